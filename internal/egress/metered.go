package egress

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A metered connection is one to a server that speaks plain HTTP: every byte,
// those of headers too, counts against the gateway's limits.
type metered struct {
	net.Conn
	g    *Gateway
	last atomic.Int64 // when a byte last moved, in nanoseconds

	reads, writes time.Time // until when one may take, as it was set last
}

// until returns the deadline to be set, if the one that was set is not far enough
// away: setting one with each call costs more than the call. At least three
// quarters of idleTime are left.
func until(set time.Time) (next time.Time, due bool) {
	now := time.Now()
	return now.Add(idleTime), set.Sub(now) < idleTime*3/4
}

func (c *metered) Read(p []byte) (int, error) {
	m := &c.g.meter
	for {
		if m.full() {
			return 0, errBytes
		}
		if next, due := until(c.reads); due {
			c.reads = next
			c.Conn.SetReadDeadline(next)
		}
		n, err := c.Conn.Read(p[:min(int64(len(p)), m.chunk(int64(len(p))))])
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, c.last.Load())) < idleTime {
			c.reads = time.Time{}
			continue
		}
		if room := int(m.take(int64(n))); room < n {
			n, err = room, errBytes
		}
		m.received.Add(int64(n))
		return n, c.moved(n, err)
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
		if next, due := until(c.writes); due {
			c.writes = next
			c.Conn.SetWriteDeadline(next)
		}
		n, err := c.Conn.Write(p[done : done+int(room)])
		m.back(room - int64(n))
		m.sent.Add(int64(n))
		if done += n; c.moved(n, err) != nil {
			return done, err
		}
	}
	return done, nil
}

func (c *metered) unwrap() net.Conn { return c.Conn }

func (c *metered) moved(n int, err error) error {
	c.last.Store(time.Now().UnixNano())
	if err == nil {
		err = c.g.meter.passed(c.g.ctx, int64(n))
	}
	return err
}
