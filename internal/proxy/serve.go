package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Serve answers the clients of a listener until that is closed or the proxy
// ends. It closes the listener, and returns nil when the proxy has ended.
func (g *Proxy) Serve(l net.Listener, p Protocol) error {
	switch p {
	case HTTP:
		return g.listen(l, p, func(d *admittingListener) error { return g.server.Serve(d) })
	case SOCKS:
		return g.listen(l, p, func(d *admittingListener) error { return d.serveEach(g.serveSOCKS) })
	}
	l.Close()
	return errors.New("no such protocol: " + string(p))
}

// Forward connects every client of a listener to one address of the host, which
// the policy has granted: no rule is asked. It returns as Serve does.
func (g *Proxy) Forward(l net.Listener, to string) error {
	addr, err := netip.ParseAddrPort(to)
	if err != nil {
		l.Close()
		return err
	}
	return g.listen(l, forwarded, func(d *admittingListener) error {
		return d.serveEach(func(c *trackedConn) {
			defer c.Close()
			t := Target{Host: hostrules.HostOf(addr.Addr()), Port: addr.Port(), Protocol: string(forwarded)}
			e := newEvent(t)
			e.Address = addr.String()
			conn, err := g.connect(g.ctx, g.cfg.Dial, Target{}, addr)
			if err == nil {
				e.Sent, e.Received, err = g.splice(g.ctx, c, conn, nil)
			}
			g.finish(e, err)
		})
	})
}

// forwarded is the protocol of Forward's clients.
const forwarded Protocol = "forward"

// listen has serve accept the clients of a listener, which closes with the proxy.
func (g *Proxy) listen(l net.Listener, p Protocol, serve func(*admittingListener) error) error {
	defer l.Close()
	if !g.enter() {
		return nil
	}
	defer g.leave()
	if !g.track(l, Target{}) {
		return nil
	}
	defer g.untrack(l)
	if p != forwarded {
		g.proxies.Store(l.Addr().String(), true)
	}
	if err := serve(&admittingListener{l, g, p}); g.ctx.Err() == nil {
		return err
	}
	return nil
}

// An admittingListener is a listener that accepts only clients for which Limits have room, and
// tells the others why.
type admittingListener struct {
	net.Listener
	g *Proxy
	p Protocol
}

// Accept returns the next client that was admitted, as a *clientConn. It waits where the
// process has no descriptor left.
func (d *admittingListener) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err == nil {
			var c *trackedConn
			if c, err = d.g.admit(conn, Target{Protocol: string(d.p)}); err == nil {
				return newClient(d.g, c, nil), nil
			}
			d.g.reject(conn, d.p, err)
			continue
		}
		// ENOSPC: the processes of the user, a tool's among them, have all of its epoll watches (fs.epoll.max_user_watches, epoll(7)).
		if t := interface{ Temporary() bool }(nil); !errors.Is(err, syscall.ENOSPC) && (!errors.As(err, &t) || !t.Temporary()) {
			return nil, err
		}
		if err := sleep(d.g.ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// serveEach runs serve in a goroutine for each client. serve closes the connection.
func (d *admittingListener) serveEach(serve func(*trackedConn)) error {
	for {
		conn, err := d.Accept()
		if err != nil {
			return err
		}
		c := conn.(*clientConn).trackedConn
		if !d.g.spawn(func() { serve(c) }) {
			c.Close()
		}
	}
}

// serveSOCKS serves one client.
func (g *Proxy) serveSOCKS(c *trackedConn) {
	c.SetDeadline(time.Now().Add(headerTimeout))
	t, shown, err := g.handshake(c)
	if err != nil {
		g.socksFailed(c, shown, err)
		return
	}
	c.SetDeadline(time.Time{})
	ctx, gone := context.WithCancel(g.ctx)
	defer gone()
	stop := g.watch(c, gone)
	u, err := g.openTunnel(ctx, t)
	head := stop()
	c.SetWriteDeadline(time.Now().Add(headerTimeout))
	if err != nil {
		c.Write(socksReply(replyTo(err)))
		c.Close()
		return
	}
	if _, err := c.Write(socksReply(replyDone)); err != nil {
		c.Close()
		u.Close()
		return
	}
	c.SetWriteDeadline(time.Time{})
	u.run(c, head)
}

// watch calls gone when a client leaves while it waits for Decide or for a server, as net/http
// does for requests: its place is free then. What stop returns was sent by a client that did not wait.
func (g *Proxy) watch(c net.Conn, gone func()) (stop func() []byte) {
	read := make(chan []byte, 1)
	go func() {
		b := make([]byte, 1)
		n, err := c.Read(b)
		if err == io.EOF {
			err = cmp.Or(g.waitGone(c), err)
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			gone()
		}
		read <- b[:n]
	}()
	return func() []byte {
		c.SetReadDeadline(time.Unix(1, 0))
		head := <-read
		c.SetReadDeadline(time.Time{})
		return head
	}
}

// socksFailed ends a handshake. A client that just went away is no violation.
func (g *Proxy) socksFailed(c *trackedConn, shown string, err error) {
	defer c.Close()
	var e *socksError
	if !errors.As(err, &e) {
		return
	}
	g.eventLog.add(policy.Connection{Time: time.Now(), Protocol: string(SOCKS), Host: shown, Reason: e.why})
	if e.reply != 0 {
		c.Write(socksReply(e.reply))
	}
}
