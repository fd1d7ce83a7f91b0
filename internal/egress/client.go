package egress

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A clientConn is a connection to the HTTP server of the gateway: a proxy's client's, or one inside of
// a tunnel. It counts the lines of each header before net/http makes fields of them, since a field
// of six bytes takes some 200 there.
type clientConn struct {
	*tracked
	inner   *inner        // what the connection is inside of; nil: it is a proxy's client
	done    chan struct{} // closed with the connection; nil: nobody waits for it
	ended   sync.Once
	entered bool // Close waits for the server's goroutine

	mu    sync.Mutex
	lines int       // of the header that is being read; -1: it is whole
	size  int       // of that
	line  int       // bytes of its last line
	cost  int64     // of it, taken from the gateway's budget
	wrote time.Time // when the deadline of writes was set
}

const (
	mostHeader = 64 << 10 // bytes of a request's header
	mostFields = 200      // of a request's header
)

// errFields and errBudget refuse headers before they are parsed.
var (
	errBudget = &Refusal{Why: "the headers of all requests under way take as much memory as they may: try again when others have ended"}
	errFields = &Refusal{Why: "the request's header has more fields, or bytes, than a request may have: 200, or 64 KiB"}
)

func newClient(c *tracked, in *inner) *clientConn { return &clientConn{tracked: c, inner: in} }

func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.tracked.Read(p)
	c.mu.Lock()
	fault := c.look(p[:n])
	c.mu.Unlock()
	if fault == nil {
		return n, err
	}
	c.g.finish(Event{Time: time.Now(), Protocol: string(HTTP)}, fault)
	status := http.StatusRequestHeaderFieldsTooLarge
	if fault == errBudget {
		status = http.StatusServiceUnavailable
	}
	c.tracked.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	c.tracked.Write(answer{status, fault.explain("")}.raw(fault.Why))
	return 0, io.EOF // at which net/http says nothing
}

// look counts the lines of a header until the blank one. What comes behind it in the same piece,
// and what is read while a body is, is a buffer's worth of the next header at most.
func (c *clientConn) look(b []byte) *Refusal {
	if c.lines < 0 {
		return nil
	}
	n, before, whole := 0, c.lines, false
	for ; n < len(b) && !whole; n++ {
		switch x := b[n]; {
		case x == '\n' && c.line == 0:
			whole = c.lines > 0 // else it stands before the first line
		case x == '\n':
			c.lines++
			c.line = 0
		case x != '\r':
			c.line++
		}
	}
	c.size += n
	cost := int64(c.lines-before)*fieldCost + int64(n)*byteCost
	if !c.g.heads.take(cost) {
		return errBudget
	}
	if c.cost += cost; c.lines > 1+mostFields || c.size > mostHeader+4<<10 { // net/http says more of bytes
		return errFields
	}
	if whole {
		c.lines = -1
	}
	return nil
}

// next has the next header looked at.
func (c *clientConn) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.g.heads.back(c.cost)
	c.lines, c.size, c.line, c.cost = 0, 0, 0, 0
}

// release ends the looking: the header is whole.
func (c *clientConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = -1
}

// Write gives a client that reads slowly idleTime for each write.
func (c *clientConn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.wrote) > idleTime/4 {
		c.wrote = now
		c.tracked.SetWriteDeadline(now.Add(idleTime))
	}
	return c.tracked.Write(p)
}

// Close closes the connection and tells who waits for that.
func (c *clientConn) Close() error {
	err := c.tracked.Close()
	c.ended.Do(func() {
		c.next()
		if c.done != nil {
			close(c.done)
		}
	})
	return err
}

// CloseWrite tells the client that nothing more comes.
func (c *clientConn) CloseWrite() error { return closeWrite(c.tracked) }

func (c *clientConn) unwrap() net.Conn { return c.tracked }

// A budget is bytes of memory that all headers under way in a gateway share: those of requests,
// of what is made of these for servers, and of responses.
type budget struct{ used atomic.Int64 }

const (
	mostHeads = 64 << 20
	fieldCost = 600 // of a field, in the maps of net/http and of what is cloned of them
	byteCost  = 3
)

func costOf(line int) int64 { return fieldCost + int64(line)*byteCost }

// take reserves n bytes; false: there is no room.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= mostHeads {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) back(n int64) { b.used.Add(-n) }
