package egress

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A metered connection is one to a server that speaks plain HTTP: every byte,
// those of headers too, counts against the gateway's limits.
type metered struct {
	net.Conn
	g    *Gateway
	last atomic.Int64 // when a byte last moved, in nanoseconds
	end  sync.Once
	over chan struct{} // closed with it; nil without a rate
}

func newMetered(conn net.Conn, g *Gateway) *metered {
	return &metered{Conn: conn, g: g, over: g.meter.over()}
}

// Close closes the connection; bytes of its that wait for their turn wait no longer.
func (c *metered) Close() error {
	if c.over != nil {
		c.end.Do(func() { close(c.over) })
	}
	return c.Conn.Close()
}

func (c *metered) Read(p []byte) (int, error) {
	m := &c.g.meter
	for {
		if m.full() {
			return 0, errBytes
		}
		c.Conn.SetReadDeadline(time.Now().Add(idleTime))
		n, err := c.Conn.Read(p[:min(int64(len(p)), m.chunk(int64(len(p))))])
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, c.last.Load())) < idleTime {
			continue
		}
		if room := int(m.take(int64(n))); room < n {
			n, err = room, errBytes
		}
		m.received.Add(int64(n))
		c.last.Store(time.Now().UnixNano())
		if late := m.turn(c.g.ctx, c.over, int64(n)); err == nil {
			err = late
		}
		return n, err
	}
}

func (c *metered) Write(p []byte) (int, error) {
	m := &c.g.meter
	done := 0
	for done < len(p) {
		room := m.take(m.chunk(int64(len(p) - done)))
		if room == 0 {
			return done, errBytes
		}
		if err := m.turn(c.g.ctx, c.over, room); err != nil {
			m.back(room)
			return done, err
		}
		c.Conn.SetWriteDeadline(time.Now().Add(idleTime))
		n, err := c.Conn.Write(p[done : done+int(room)])
		m.back(room - int64(n))
		m.unturn(room - int64(n))
		m.sent.Add(int64(n))
		c.last.Store(time.Now().UnixNano())
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}
