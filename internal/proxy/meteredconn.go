package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A meteredConn is a connection to a server of HTTP. Every byte, those of headers and TLS
// too, counts against the proxy's limits.
type meteredConn struct {
	net.Conn
	g      *Proxy
	last   atomic.Int64 // when a byte last moved, in nanoseconds
	noWait bool         // Read fails as at a deadline where it would wait, which ends no TLS

	ctx    context.Context // ends the waits for the rate
	cancel context.CancelFunc

	reads, writes time.Time // until when one may take, as it was set last
}

func newMeteredConn(conn net.Conn, g *Proxy) *meteredConn {
	c := &meteredConn{Conn: conn, g: g}
	c.ctx, c.cancel = context.WithCancel(g.ctx)
	return c
}

// Close closes the connection; bytes of its that wait for their turn wait no longer.
func (c *meteredConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// nextDeadline returns the deadline to be set, if the one that was set is not far enough
// away: setting one with each call costs more than the call. At least three
// quarters of idleTime are left.
func nextDeadline(set time.Time) (next time.Time, due bool) {
	now := time.Now()
	return now.Add(idleTimeout), set.Sub(now) < idleTimeout*3/4
}

func (c *meteredConn) Read(p []byte) (int, error) {
	m := &c.g.meter
	for {
		if m.reached() {
			return 0, errBytes
		}
		if next, due := nextDeadline(c.reads); due {
			c.reads = next
			c.Conn.SetReadDeadline(next)
		}
		p := p[:min(int64(len(p)), m.chunk(int64(len(p))))]
		read := c.Conn.Read
		if c.noWait {
			read = c.readNow
		}
		n, err := read(p)
		if n == 0 && !c.noWait && errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, c.last.Load())) < idleTimeout {
			c.reads = time.Time{}
			continue
		}
		if room := int(m.take(int64(n))); room < n {
			n, err = room, errBytes
		}
		if n == 0 {
			return n, err
		}
		m.received.Add(int64(n))
		c.last.Store(time.Now().UnixNano())
		if late := m.waitRate(c.ctx, int64(n)); err == nil {
			err = late
		}
		return n, err
	}
}

func (c *meteredConn) Write(p []byte) (int, error) {
	m := &c.g.meter
	done := 0
	for done < len(p) {
		room, err := m.reserve(c.ctx, int64(len(p)-done))
		if err != nil {
			return done, err
		}
		if next, due := nextDeadline(c.writes); due {
			c.writes = next
			c.Conn.SetWriteDeadline(next)
		}
		n, err := c.Conn.Write(p[done : done+int(room)])
		m.settle(room, int64(n), &m.sent)
		c.last.Store(time.Now().UnixNano())
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

func (c *meteredConn) unwrap() net.Conn { return c.Conn }
