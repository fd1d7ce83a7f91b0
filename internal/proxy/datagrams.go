package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	datagramTime = time.Minute      // without a datagram in either direction
	questionTime = 10 * time.Second // the same at a name server's port, where each question has a port of its own
)

// silence is how long a flow may be without a datagram.
func silence(port uint16) time.Duration {
	if port == 53 {
		return questionTime
	}
	return datagramTime
}

// Datagrams decides about a target, connects a socket to it and carries datagrams
// there and back, one for each Read and Write of client, until none has passed for
// a while. It closes client. What cannot be passed on at once is lost, as datagrams
// are. The error of a denial is a [*Refusal].
//
// A client that is an io.WriterTo has nothing held for it while it is silent. One
// with a method Unreachable() is told when nobody is at the target's port.
func (g *Gateway) Datagrams(ctx context.Context, client net.Conn, t Target) (err error) {
	defer client.Close()
	if !g.enter() {
		return ErrClosed
	}
	defer g.leave()
	e := begin(t)
	defer func() { g.finish(e, err) }()
	d, err := g.judgeFlow(t)
	e.Rule = d.Rule
	if err != nil {
		return err
	}
	c, err := g.admit(client, t)
	if err != nil {
		return err
	}
	defer c.Close()
	server, at, err := g.reach(ctx, t, g.cfg.DialUDP, func(ctx context.Context, a netip.Addr) Decision {
		return g.sightings.judge(ctx, a, t.Port, g.cfg.Route(a))
	})
	e.Address = address(at)
	if err != nil {
		return err
	}
	x := &parley{g: g, client: c, server: server, silence: g.silence(t.Port)}
	err = x.run(ctx)
	e.Sent, e.Received = x.sent, x.received
	return err
}

// judgeFlow decides about a target before its name is looked up. Decide is not
// asked: a client that tries HTTP/3 first waits for nobody.
func (g *Gateway) judgeFlow(t Target) (Decision, error) {
	d := g.cfg.Datagrams.Target(t.Host, t.Port)
	switch {
	case t.Port == 0:
		d = Decision{Why: "there is no port 0"}
	case d.Outcome != Allow:
	case g.meter.full():
		return d, t.spent(d.Rule)
	default:
		return d, g.known(t, d.Rule)
	}
	return d, t.refuse(d)
}

// A parley is one flow, both ways.
type parley struct {
	g              *Gateway
	client, server net.Conn
	silence        time.Duration
	last           atomic.Int64 // when a datagram last passed, in nanoseconds
	sent, received int64
}

// run returns when the flow is over, with nil if that is because it was silent, or
// its client has gone.
func (x *parley) run(ctx context.Context) error {
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
func (x *parley) up() error {
	to := toServer{x}
	if w, ok := bare(x.client).(io.WriterTo); ok {
		_, err := w.WriteTo(to)
		return unlessOver(err)
	}
	b := make([]byte, bufferSize)
	for {
		n, err := x.client.Read(b)
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return unlessOver(err)
		}
	}
}

// toServer sends each datagram that is written to it.
type toServer struct{ x *parley }

func (w toServer) Write(b []byte) (int, error) {
	x := w.x
	if err := x.room(len(b)); err != nil {
		return 0, err
	}
	switch _, err := x.server.Write(b); {
	case err == nil:
		x.passed(len(b), &x.sent, &x.g.meter.sent)
		return len(b), nil
	case x.lost(err):
		x.g.meter.settle(int64(len(b)), 0, &x.g.meter.sent)
		return len(b), nil
	default:
		return 0, err
	}
}

// down passes what the server sends.
func (x *parley) down() error {
	read := reader(x.server)
	for {
		if err := x.server.SetReadDeadline(time.Unix(0, x.last.Load()).Add(x.silence)); err != nil {
			return unlessOver(err)
		}
		b, n, err := read(bufferSize)
		if errors.Is(err, io.EOF) {
			err = nil // to a reader of streams, an empty datagram
		}
		if err == nil {
			err = x.answer(b[:n])
		}
		if b != nil {
			buffers.Put(b)
		}
		switch {
		case err == nil || x.lost(err):
		case errors.Is(err, os.ErrDeadlineExceeded):
			if time.Since(time.Unix(0, x.last.Load())) >= x.silence {
				return nil
			}
		default:
			return unlessOver(err)
		}
	}
}

// answer passes one datagram of the server's.
func (x *parley) answer(b []byte) error {
	if err := x.room(len(b)); err != nil {
		return err
	}
	if _, err := x.client.Write(b); err != nil {
		return err
	}
	x.passed(len(b), &x.received, &x.g.meter.received)
	return nil
}

// room takes a datagram's bytes from the limit. One that it has no room for uses up
// what is left of it. It waits for its turn under the rate; what comes meanwhile is the
// queues', as long as they have room.
func (x *parley) room(n int) error {
	if x.g.meter.full() || x.g.meter.take(int64(n)) < int64(n) {
		return errBytes
	}
	return x.g.meter.turn(x.g.ctx, int64(n))
}

// passed counts a datagram.
func (x *parley) passed(n int, of *int64, all *atomic.Int64) {
	x.last.Store(time.Now().UnixNano())
	*of += int64(n)
	all.Add(int64(n))
}

// lost reports whether an error of a socket is of one datagram, or of what an ICMP
// message said about one, and has nothing to say of the next. The client is told
// what it would have been told by a socket of its own.
func (x *parley) lost(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH:
		if u, ok := bare(x.client).(interface{ Unreachable() }); ok {
			u.Unreachable()
		}
		return true
	case syscall.EMSGSIZE, syscall.ENOBUFS:
		return true
	}
	return false
}

// unlessOver is an error, but for that of a connection which this end has closed.
func unlessOver(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
