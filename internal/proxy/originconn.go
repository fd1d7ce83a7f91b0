package proxy

import (
	"bufio"
	"errors"
	"net"
	"os"
	"time"
)

// An originConn is a connection to a server of HTTP/1.1, which one exchange at a time has.
//
// http.ReadResponse reads from a bufio.Reader, which a headReader fills: that counts a head before
// fields are made of it. What a server has sent beyond a response is in the bufio.Reader, in TLS or in the
// socket when the next request is about to be written. isQuiet looks at all three.
type originConn struct {
	conn    net.Conn
	metered *meteredConn // conn, or below its TLS
	address string       // where it goes, for events
	in      *bufio.Reader

	meter   headMeter
	heading bool // a head is being read
	whole   bool // and the meter has seen its end

	// While it is kept:
	pool   *idleConns
	host   string      // and port
	expiry *time.Timer // closes it
}

// readBuffer is small, since a trailer has to fit in, whose fields are not counted.
const readBuffer = 1 << 10

func newOriginConn(conn net.Conn, metered *meteredConn, place string) *originConn {
	c := &originConn{conn: conn, metered: metered, address: place}
	c.meter = headMeter{budget: &metered.g.headerBudget, most: maxResponseFields, bytes: maxHeadBytes}
	c.in = bufio.NewReaderSize(headReader{c}, readBuffer)
	return c
}

// isQuiet reports that the server has neither sent anything nor ended the connection since its last response.
func (c *originConn) isQuiet() bool {
	c.metered.noWait = true
	_, err := c.in.Peek(1)
	c.metered.noWait = false
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// Close closes the connection. In TLS the server is not told before: that could wait for it.
func (c *originConn) Close() error {
	c.meter.close()
	return c.metered.Close()
}

// countHead counts what net/http is about to read, or has in its buffer, of a head. It is not given more once
// the head has ended, since that would not be counted.
func (c *originConn) countHead(b []byte) error {
	if c.whole {
		return errFraming
	}
	_, whole, fault := c.meter.count(b)
	c.whole = whole
	switch fault {
	case nil:
		return nil
	case errFields:
		return errHead
	}
	return fault
}

// A headReader reads from a connection, and counts while a head is read.
type headReader struct{ c *originConn }

func (h headReader) Read(p []byte) (int, error) {
	n, err := h.c.conn.Read(p)
	if h.c.heading && n > 0 {
		if fault := h.c.countHead(p[:n]); fault != nil {
			return 0, fault
		}
	}
	return n, err
}
