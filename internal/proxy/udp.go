package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

const (
	udpIdleTime = time.Minute      // without a datagram in either direction
	dnsIdleTime = 10 * time.Second // the same at port 53, where each question uses another local port
)

// udpTimeout is how long a flow may be without a datagram.
func udpTimeout(port uint16) time.Duration {
	if port == 53 {
		return dnsIdleTime
	}
	return udpIdleTime
}

// CarryUDP decides about a target, connects a socket to it and carries datagrams there and back, one for each Read and Write of client, until none
// has passed for a while. It closes client. What cannot be passed on at once is lost, as datagrams are. The error of a denial is a [*Refusal].
//
// A client that is an io.WriterTo has nothing held for it while it is silent. One with a method Unreachable() is told when the target's port is
// closed.
func (g *Proxy) CarryUDP(ctx context.Context, client net.Conn, t Target) (err error) {
	defer client.Close()
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	e := newEvent(t)
	defer func() { g.finish(e, err) }()
	t.rules, t.datagrams = g.rules.Load(), true
	d, err := g.decideUDP(t)
	e.Rule = d.Rule
	if err != nil {
		return err
	}
	c, err := g.admit(client, t)
	if err != nil {
		return err
	}
	defer c.Close()
	server, at, err := g.dialFirst(ctx, t, g.cfg.DialUDP, func(a netip.Addr) hostrules.Decision {
		return g.compiled.datagrams.Address(a, t.Port, g.cfg.Route(a))
	})
	e.Address = address(at)
	if err != nil {
		return err
	}
	x := &udpFlow{g: g, client: c, server: server, timeout: g.udpTimeout(t.Port)}
	err = cmp.Or(x.run(ctx), g.overruled(t))
	e.Sent, e.Received = x.sent, x.received
	return err
}

// decideUDP decides about a target before its name is looked up. Decide is not asked: a client that tries HTTP/3 first must not wait.
func (g *Proxy) decideUDP(t Target) (hostrules.Decision, error) {
	d := g.AllowedDatagrams(t.Host, t.Port)
	switch {
	case t.Port == 0:
		d = hostrules.Decision{Why: "there is no port 0"}
	case d.Outcome != hostrules.Allow:
	case g.meter.exhausted():
		return d, t.spent(d.Rule)
	default:
		return d, g.countName(t, d.Rule)
	}
	return d, t.refuse(d)
}

// A udpFlow is one flow, both ways.
type udpFlow struct {
	g              *Proxy
	client, server net.Conn
	timeout        time.Duration
	last           atomic.Int64 // when a datagram last passed, in nanoseconds
	sent, received int64
}

// run returns when the flow is over, with nil if that is because it was silent, or its client has gone.
func (x *udpFlow) run(ctx context.Context) error {
	x.last.Store(time.Now().UnixNano())
	cut := func() { x.client.Close(); x.server.Close() }
	defer context.AfterFunc(ctx, cut)()
	down := make(chan error, 1)
	go func() {
		defer cut()
		down <- x.down()
	}()
	err := x.up()
	cut()
	if failed := <-down; err == nil {
		err = failed
	}
	return err
}

// up passes what the client sends.
func (x *udpFlow) up() error {
	to := udpWriter{x}
	if w, ok := unwrapConn(x.client).(io.WriterTo); ok {
		_, err := w.WriteTo(to)
		return ignoreClosed(err)
	}
	b := make([]byte, bufferSize)
	for {
		n, err := x.client.Read(b)
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return ignoreClosed(err)
		}
	}
}

// udpWriter sends each datagram that is written to it.
type udpWriter struct{ x *udpFlow }

func (w udpWriter) Write(b []byte) (int, error) {
	x := w.x
	if err := x.reserve(len(b)); err != nil {
		return 0, err
	}
	switch _, err := x.server.Write(b); {
	case err == nil:
		x.count(len(b), &x.sent, &x.g.meter.sent)
		return len(b), nil
	case x.isTransient(err):
		x.g.meter.settle(int64(len(b)), 0, &x.g.meter.sent)
		return len(b), nil
	default:
		return 0, err
	}
}

// down passes what the server sends.
func (x *udpFlow) down() error {
	read := reader(x.server)
	for {
		if err := x.server.SetReadDeadline(time.Unix(0, x.last.Load()).Add(x.timeout)); err != nil {
			return ignoreClosed(err)
		}
		b, n, err := read(bufferSize)
		if errors.Is(err, io.EOF) {
			err = nil // to a reader of streams, an empty datagram
		}
		if err == nil {
			err = x.sendToClient(b[:n])
		}
		if b != nil {
			buffers.Put(b)
		}
		switch {
		case err == nil || x.isTransient(err):
		case errors.Is(err, os.ErrDeadlineExceeded):
			if time.Since(time.Unix(0, x.last.Load())) >= x.timeout {
				return nil
			}
		default:
			return ignoreClosed(err)
		}
	}
}

// sendToClient passes one datagram of the server's.
func (x *udpFlow) sendToClient(b []byte) error {
	if err := x.reserve(len(b)); err != nil {
		return err
	}
	if _, err := x.client.Write(b); err != nil {
		return err
	}
	x.count(len(b), &x.received, &x.g.meter.received)
	return nil
}

// reserve takes a datagram's bytes from the limit. One that it has no room for uses up what is left of it. It waits for its turn under the rate; what
// comes meanwhile is the queues', as long as they have room.
func (x *udpFlow) reserve(n int) error {
	if x.g.meter.exhausted() || x.g.meter.take(int64(n)) < int64(n) {
		return errBytes
	}
	return x.g.meter.waitRate(x.g.ctx, int64(n))
}

// count counts a datagram.
func (x *udpFlow) count(n int, of *int64, all *atomic.Int64) {
	x.last.Store(time.Now().UnixNano())
	*of += int64(n)
	all.Add(int64(n))
}

// isTransient reports whether an error of a socket is of one datagram, or of what an ICMP message said about one, and has nothing to say of the next.
// The client is told what the kernel would have told it.
func (x *udpFlow) isTransient(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		if u, ok := unwrapConn(x.client).(interface{ Unreachable() }); ok {
			u.Unreachable()
		}
		return true
	case syscall.EMSGSIZE, syscall.ENOBUFS:
		return true
	}
	return false
}

// ignoreClosed is an error, but for that of a connection which this end has closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
