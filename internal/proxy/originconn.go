package proxy

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
)

// An originConn is a connection to a server of HTTP/1, between http.Transport and the
// network. What http.Transport has read beyond a response it writes to the program's own log
// (persistConn.readLoopPeekFailLocked), with the secret in it if the server echoes that. So
// nothing can be read beyond one: the head is handed out by itself, of a body as much as
// its length says, and of one in chunks one byte at a time where http.Transport fills its
// buffer and not a chunk; between requests bytes are the connection's end.
type originConn struct {
	net.Conn
	metered *meteredConn // Conn, or below its TLS
	address string       // where it goes, for events
	in      *bufio.Reader
	head    headMeter

	mu          sync.Mutex
	turn        uint64 // of the request that has the connection
	asked       bool   // that request, or its beginning, was written
	heading     bool   // its response was not returned by http.Transport
	heads       int    // that were handed out to it
	left        int64  // of its response's body, if the length is known
	unsolicited bool   // the server spoke without being asked
	waiting     bool   // Read waits for the server, and had nothing before
}

// readBuffer is http.Transport's: a read of more is one of a chunk's data. A trailer has to fit in.
const readBuffer = 1 << 10

var (
	errFraming  = errors.New("the response is malformed") // it does not quote it
	errHead     = errors.New("the response's head is too long")
	errStatus   = errors.New("the response's status is not from 100 to 999")
	errUnasked  = errors.New("the server spoke without being asked")
	errSwitched = errors.New("the server switched to a protocol that it was not asked for")
)

func newOriginConn(conn net.Conn, metered *meteredConn, place string) *originConn {
	heads := &metered.g.headerBudget
	return &originConn{Conn: conn, metered: metered, address: place, in: bufio.NewReader(conn), head: headMeter{budget: heads, most: maxResponseFields, bytes: maxHeadBytes}}
}

// begin gives the connection to a request, whose turn it returns.
func (c *originConn) begin() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	c.asked, c.heading, c.heads, c.left = false, true, 0, 0
	c.head.reset()
	return c.turn
}

// idle takes it away again; the next request may have it already.
func (c *originConn) idle(turn uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == turn {
		c.asked = false
	}
}

// gotResponse sets the length of the body. It returns the head's cost of the budget.
func (c *originConn) gotResponse(turn uint64, res *http.Response) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn != turn {
		return 0
	}
	c.heading = false
	if c.left = res.ContentLength; res.StatusCode == http.StatusSwitchingProtocols || c.left < 0 && res.TransferEncoding == nil {
		c.left = math.MaxInt64 // to the connection's end
	}
	return c.head.takeCost()
}

// Write writes a request. What was spoilt before it takes none: http.Transport makes
// another connection then.
func (c *originConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if !c.asked && !c.waiting && c.pending() {
		c.unsolicited = true
	}
	spoilt := c.unsolicited
	c.asked = true
	c.mu.Unlock()
	if spoilt {
		return 0, errUnasked
	}
	return c.Conn.Write(p)
}

// Read returns bytes of the response under way only. http.Transport calls it from one goroutine at a time.
func (c *originConn) Read(p []byte) (int, error) {
	if most := c.readable(len(p)); most > 0 {
		n, err := c.in.Read(p[:most])
		c.mu.Lock()
		c.left -= int64(n)
		c.mu.Unlock()
		return n, err
	}
	c.mu.Lock()
	if !c.asked && c.pending() {
		c.unsolicited = true
	}
	c.waiting = true
	c.mu.Unlock()
	_, err := c.in.Peek(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	switch {
	case err != nil:
		return 0, err
	case !c.asked || c.unsolicited:
		c.unsolicited = true
		return 0, io.EOF // which is not logged
	case !c.heading:
		return c.in.Read(p[:1])
	}
	held, _ := c.in.Peek(min(len(p), c.in.Buffered()))
	n, whole, fault := c.head.count(held)
	switch {
	case fault == errFields:
		return 0, errHead
	case fault != nil:
		return 0, fault
	case whole:
		if c.heads++; c.heads > 1+maxInterim {
			return 0, errHead
		}
		c.head.resetKeepCost()
	}
	return c.in.Read(p[:n])
}

// pending reports whether something has come that is not read yet, together with what was read
// before: that is no answer to a request which is yet to be written. It does not look at the network,
// but TLS may hold a record. Read is not under way then, or is what asks.
func (c *originConn) pending() bool {
	c.metered.offline.Store(true)
	c.in.Peek(1)
	c.metered.offline.Store(false)
	return c.in.Buffered() > 0
}

// readable is how much of a body may be read at once; 0: not known.
func (c *originConn) readable(most int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.asked || c.heading:
		return 0
	case c.left > 0:
		return int(min(int64(most), c.left))
	case most > readBuffer:
		return most
	}
	return 0
}

// Close closes the connection.
func (c *originConn) Close() error {
	c.head.close()
	return c.Conn.Close()
}

func (c *originConn) unwrap() net.Conn { return c.Conn }

// sanitizeError replaces those of http.Transport's errors that quote the server.
func sanitizeError(err error) error {
	for _, known := range []error{errBudget, errBytes, errHead, errStatus, errUnasked, errIdle, ErrClosed, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	if made := (*dialError)(nil); errors.As(err, &made) {
		return made.error
	}
	if n := net.Error(nil); errors.As(err, &n) || refusalOf(err) != nil {
		return err
	}
	if isClosedIdle(err) {
		return io.EOF
	}
	return errFraming
}

// A dialError is why no connection was made.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }
