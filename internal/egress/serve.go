package egress

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Serve answers the clients of a listener until that is closed or the gateway
// ends. It closes the listener, and returns nil when the gateway has ended.
func (g *Gateway) Serve(l net.Listener, p Protocol) error {
	switch p {
	case HTTP:
		return g.accept(l, p, func(c *tracked) { g.queue.push(newClient(c, nil)) })
	case SOCKS:
		return g.accept(l, p, g.serveSOCKS)
	}
	l.Close()
	return errors.New("no such protocol: " + string(p))
}

// accept gives each client of a listener to serve, in a goroutine of its own,
// which closes the connection.
func (g *Gateway) accept(l net.Listener, p Protocol, serve func(*tracked)) error {
	if !g.enter() {
		l.Close()
		return nil
	}
	defer g.leave()
	defer l.Close()
	if !g.track(l) {
		return nil
	}
	defer g.untrack(l)
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
		case g.ctx.Err() != nil:
			return nil
		case temporary(err):
			if !g.pause(50 * time.Millisecond) {
				return nil
			}
			continue
		default:
			return err
		}
		c, err := g.admit(conn, Target{Protocol: string(p)})
		if err != nil {
			g.turnAway(conn, p, err)
			continue
		}
		if !g.spawn(func() { serve(c) }) {
			c.Close()
		}
	}
}

// temporary reports whether a listener may accept again after an error: the
// process has no descriptor left, or the client went away first.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// pause waits; false: the gateway has ended.
func (g *Gateway) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}

func (g *Gateway) untrack(l net.Listener) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, l)
}

// Forward connects every client of a listener to one address of the host, which
// the policy has granted: no rule is asked. It returns as Serve does.
func (g *Gateway) Forward(l net.Listener, to string) error {
	addr, err := netip.ParseAddrPort(to)
	if err != nil {
		l.Close()
		return err
	}
	return g.accept(l, "forward", func(c *tracked) {
		defer c.Close()
		t := Target{Host: Host{addr: addr.Addr()}, Port: addr.Port(), Protocol: "forward"}
		e := begin(t)
		e.Address = addr.String()
		conn, err := g.connect(g.ctx, addr)
		if err == nil {
			e.Sent, e.Received, err = g.splice(g.ctx, c, conn, nil)
		}
		g.finish(e, err)
	})
}

// A queue is a listener whose connections are pushed.
type queue struct {
	begin func() // starts the server with the first connection: a gateway that is never used leaves no goroutine
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newQueue() *queue { return &queue{conns: make(chan net.Conn), done: make(chan struct{})} }

func (q *queue) push(c net.Conn) {
	q.begin()
	select {
	case q.conns <- c:
	case <-q.done:
		c.Close()
	}
}

// Accept returns the next connection that was pushed.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.done) })
	return nil
}

// Addr returns no address.
func (q *queue) Addr() net.Addr { return &net.TCPAddr{} }
