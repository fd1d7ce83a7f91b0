package egress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// An originConn is a connection to a server of HTTP/1, between http.Transport and the
// network. It hands out no byte that is not of the response to the request under way:
// whatever else a server sends http.Transport writes to the program's own log
// (persistConn.readLoopPeekFailLocked), with the secret in it if the server echoes that.
// So it follows the framing of responses, and where it cannot it tells the transport, by
// "Connection: close", to use the connection once. It bounds heads in fields and bytes,
// and leaves out interim responses but 101.
type originConn struct {
	net.Conn
	g     *Gateway
	place string // where it goes, for events

	mu      sync.Mutex // Read is the transport's reading goroutine's; ask and Write are others'
	phase   phase
	toHead  bool // the request is HEAD
	written bool // the request is, to its end
	err     error
	held    []byte // was received, and is to be looked at
	ready   []byte // may be handed out
	left    int64  // of a body or chunk
	head    answerHead
	cost    int64 // of the head, taken from the gateway's budget
	buf     [4 << 10]byte
}

// A phase is what comes next of a response.
type phase uint8

const (
	quiet phase = iota // nothing: no request is under way
	headLine
	sizedBody // a body of a known length
	chunkSize
	chunkData
	chunkEnd
	trailer
	passing // all that comes, until the connection's end
)

const (
	mostHead         = 64 << 10 // bytes of a response's head
	mostAnswerFields = 500      // of a response's head, or trailer
	mostHints        = 5        // interim responses
	mostChunkLine    = 4 << 10  // bytes of a chunk's first line
)

// errFraming is a response that is not one of HTTP/1. It does not quote it.
var (
	errFraming  = errors.New("the response is malformed")
	errHead     = errors.New("the response's head is too long")
	errHints    = errors.New("the server does not come to its response")
	errStatus   = errors.New("the response's status is none")
	errUnasked  = errors.New("the server spoke without being asked")
	errSwitched = errors.New("the server switched to a protocol that it was not asked for")
)

// ask begins a request.
func (c *originConn) ask(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != quiet || len(c.held) > 0 || c.err != nil {
		c.fail(errUnasked)
		return
	}
	c.phase, c.toHead, c.written, c.head = headLine, method == http.MethodHead, false, answerHead{}
	c.repay()
}

// asked notes that the request was written.
func (c *originConn) asked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = true
}

// Write writes a request. What was spoilt before it began takes none: the transport
// makes another connection then.
func (c *originConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	spoilt := c.err == errUnasked
	c.mu.Unlock()
	if spoilt {
		return 0, errUnasked
	}
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *originConn) Close() error {
	c.mu.Lock()
	c.repay()
	c.mu.Unlock()
	return c.Conn.Close()
}

func (c *originConn) unwrap() net.Conn { return c.Conn }

// owed is what the head costs; the caller pays it back from now on.
func (c *originConn) owed() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.cost
	c.cost = 0
	return n
}

func (c *originConn) repay() {
	c.g.heads.back(c.cost)
	c.cost = 0
}

func (c *originConn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Read hands out what is of the response.
func (c *originConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if n := copy(p, c.ready); n > 0 {
			if c.ready = c.ready[n:]; len(c.ready) == 0 {
				c.ready = nil
			}
			return n, nil
		}
		if c.err == errUnasked {
			return 0, io.EOF // which is not logged
		}
		if c.err != nil {
			return 0, c.err
		}
		if whole := c.phase == sizedBody || c.phase == chunkData || c.phase == passing; whole && len(p) > 0 {
			return c.straight(p)
		}
		n, err := c.receive(c.buf[:])
		c.held = append(c.held, c.buf[:n]...)
		if n > 0 && c.phase == quiet {
			c.fail(errUnasked)
			continue
		}
		c.scan()
		if err != nil {
			c.fail(err)
		}
	}
}

// receive reads without the lock.
func (c *originConn) receive(p []byte) (int, error) {
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.Conn.Read(p)
}

// straight reads a part of a body.
func (c *originConn) straight(p []byte) (int, error) {
	if c.phase != passing {
		p = p[:min(int64(len(p)), c.left)]
	}
	n, err := c.receive(p)
	if c.phase != passing {
		if c.left -= int64(n); c.left == 0 {
			c.bodyEnded()
		}
	}
	if err != nil {
		c.fail(err)
		if n > 0 {
			err = nil
		}
	}
	return n, err
}

func (c *originConn) bodyEnded() {
	if c.phase == sizedBody {
		c.end()
		return
	}
	c.phase = chunkEnd
}

// end is the response's. What was received beyond it nobody has asked for.
func (c *originConn) end() {
	if c.phase = quiet; len(c.held) > 0 {
		c.held = nil
		c.fail(errUnasked)
	}
}

// scan takes what was received apart.
func (c *originConn) scan() {
	for c.err == nil && len(c.held) > 0 {
		switch c.phase {
		case quiet:
			c.fail(errUnasked)
		case passing:
			c.hand(len(c.held))
		case sizedBody, chunkData:
			n := int(min(c.left, int64(len(c.held))))
			c.hand(n)
			if c.left -= int64(n); c.left == 0 {
				c.bodyEnded()
			}
		default:
			n := bytes.IndexByte(c.held, '\n') + 1
			if len(c.held) > c.mostLine() || n > c.mostLine() {
				c.fail(errHead)
			}
			if n == 0 || c.err != nil {
				return
			}
			if err := c.line(n); err != nil {
				c.fail(err)
			}
		}
	}
}

func (c *originConn) mostLine() int {
	if c.phase == headLine {
		return mostHead - len(c.head.text) + len(c.buf)
	}
	return mostChunkLine + len(c.buf)
}

// hand moves n bytes to what may be handed out.
func (c *originConn) hand(n int) {
	c.ready = append(c.ready, c.held[:n]...)
	if c.held = c.held[n:]; len(c.held) == 0 {
		c.held = nil
	}
}

// line takes a line of n bytes.
func (c *originConn) line(n int) error {
	text := strings.TrimSuffix(string(c.held[:n-1]), "\r")
	if c.phase == headLine {
		c.held = c.held[n:]
		return c.headed(text, n)
	}
	c.hand(n)
	switch c.phase {
	case chunkSize:
		digits, _, _ := strings.Cut(text, ";")
		size, err := strconv.ParseUint(strings.TrimRight(digits, " \t"), 16, 62)
		if err != nil || len(text) > mostChunkLine {
			return errFraming
		}
		if c.phase, c.left = chunkData, int64(size); size == 0 {
			c.phase, c.head.fields = trailer, 0
		}
	case chunkEnd:
		if c.phase = chunkSize; text != "" {
			return errFraming
		}
	case trailer:
		if text == "" {
			c.end()
			return nil
		}
		if c.head.fields++; c.head.fields > mostAnswerFields {
			return errHead
		}
		return c.pay(n)
	}
	return nil
}

// pay takes what a line costs from the gateway's budget.
func (c *originConn) pay(n int) error {
	cost := costOf(n)
	if !c.g.heads.take(cost) {
		return errBudget
	}
	c.cost += cost
	return nil
}

// malformed leaves of a transport's error what does not quote the server.
func malformed(err error) error {
	for _, known := range []error{errBudget, errBytes, errFraming, errHead, errHints, errStatus, errUnasked, errIdle, ErrClosed, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	var made *madeError
	if errors.As(err, &made) {
		return made.error
	}
	if n := net.Error(nil); errors.As(err, &n) || refusalOf(err) != nil {
		return err
	}
	if fmt.Sprint(err) == "http: server closed idle connection" {
		return io.EOF
	}
	return errFraming
}
