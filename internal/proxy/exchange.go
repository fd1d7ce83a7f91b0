package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	errFraming    = errors.New("the response is malformed") // it does not quote it
	errHead       = errors.New("the response's head is too long")
	errStatus     = errors.New("the response's status is not from 100 to 999")
	errSwitched   = errors.New("the server switched to a protocol that it was not asked for")
	errUnanswered = errors.New("the server closed the connection without a response")
)

// An exchange is a request on a connection, and the body of its response. The goroutine of the request writes it
// and reads the response; a request with a body is written by another, since the server may respond before it has read
// all of it. The end of the request's context closes the connection.
type exchange struct {
	c        *originConn
	r        *http.Request
	detach   func() bool // from the context; false: that has ended
	last     bool        // the connection ends with this exchange
	writeErr error       // of the connection
	written  chan error  // the result of writing a request with a body
	body     io.Reader   // net/http's, whose Close would read it to its end
	ended    error       // of body
	over     atomic.Bool // the connection has been given back, or closed
}

// exchange sends a request and reads the head of its response, whose body ends the exchange.
func (c *originConn) exchange(r *http.Request) (*http.Response, error) {
	x := requestOf(r.Context())
	x.event.Address = c.address
	e := &exchange{c: c, r: r}
	e.detach = context.AfterFunc(r.Context(), func() { c.metered.Close() })
	res, err := e.send()
	if err != nil {
		err = e.cause(err)
		e.abandon()
		return nil, err
	}
	x.heads += c.meter.takeCost()
	e.last = r.Close || res.Close
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		res.Body = switchedBody{e}
	case res.Body == http.NoBody:
		e.finish()
	default:
		e.body, res.Body = res.Body, e
	}
	return res, nil
}

// send writes the request and reads the head of the response.
func (e *exchange) send() (*http.Response, error) {
	if !hasBody(e.r) {
		if err := e.write(); err != nil {
			return nil, unanswered(err)
		}
	} else {
		e.written = make(chan error, 1)
		if !e.c.metered.g.spawn(func() {
			err := e.write()
			if e.written <- err; err != nil {
				e.c.metered.Close()
			}
		}) {
			e.r.Body.Close()
			return nil, ErrClosed
		}
	}
	if _, err := e.c.in.Peek(1); err != nil {
		return nil, unanswered(err)
	}
	e.c.meter.reset()
	for range 1 + maxInterim {
		res, err := e.readHead()
		if err != nil || res.StatusCode < 100 || res.StatusCode > 199 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
		e.c.meter.reset()
	}
	return nil, errHead
}

// write writes the request.
func (e *exchange) write() error {
	w := requestWriters.Get().(*bufio.Writer)
	w.Reset((*requestWriter)(e))
	err := e.r.Write(w)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(nil)
	requestWriters.Put(w)
	return cmp.Or(e.writeErr, err)
}

var requestWriters = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}

// A requestWriter keeps its connection's error, of which net/http says that it is one of the request's body.
type requestWriter exchange

func (e *requestWriter) Write(p []byte) (n int, err error) {
	n, e.writeErr = e.c.conn.Write(p)
	return n, e.writeErr
}

// unanswered marks an error if it is one by which a server ends a connection.
func unanswered(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return err
}

// readHead reads one head. What has been read of it already is counted first.
func (e *exchange) readHead() (*http.Response, error) {
	c := e.c
	c.heading, c.whole = true, false
	defer func() { c.heading = false }()
	held, _ := c.in.Peek(c.in.Buffered())
	if err := c.countHead(held); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.in, e.r)
}

// Read reads the response's body. Its end ends the exchange.
func (e *exchange) Read(p []byte) (int, error) {
	if e.ended == nil && e.over.Load() {
		e.ended = net.ErrClosed
	}
	if e.ended != nil {
		return 0, e.ended
	}
	n, err := e.body.Read(p)
	if e.ended = err; err == nil {
		return n, nil
	}
	if err != io.EOF {
		e.ended = e.cause(err)
	}
	if over := e.over.Swap(true); !over && err == io.EOF {
		e.finish()
	} else if !over {
		e.abandon()
	}
	return n, e.ended
}

// Close ends the exchange, and the connection with it if the body was not read to its end. It may be called at any time.
func (e *exchange) Close() error {
	if !e.over.Swap(true) {
		e.abandon()
	}
	return nil
}

// abandon closes the connection.
func (e *exchange) abandon() {
	e.detach()
	e.c.Close()
}

// finish gives the connection back, or closes it where another request could meet what is left of this one.
func (e *exchange) finish() {
	wrote := !hasBody(e.r)
	if !wrote && !e.last && requestOf(e.r.Context()).uploaded.Load() {
		select {
		case err := <-e.written:
			wrote = err == nil
		case <-time.After(closeTimeout): // the server has answered, and does not read
		}
	}
	if e.detach() && wrote && !e.last && e.c.in.Buffered() == 0 {
		e.c.pool.put(e.c)
		return
	}
	e.c.Close()
}

// cause is why an exchange has failed with an error: that its request was given up, if it was, or could not be read or
// written. What net/http says of a response it cannot read is left out, since it quotes the server.
func (e *exchange) cause(err error) error {
	switch why := context.Cause(e.r.Context()); {
	case why != nil:
		return why
	case requestOf(e.r.Context()).uploadBroken.Load():
		return errBody
	}
	select {
	case failed := <-e.written:
		err = cmp.Or(failed, err)
	default:
	}
	for _, known := range []error{errUnanswered, errBudget, errBytes, errHead, errFraming, errIdle, ErrClosed, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return err
		}
	}
	if n := net.Error(nil); errors.As(err, &n) {
		return err
	}
	return errFraming
}

// mayRepeat reports whether a request may be sent twice (RFC 9110, 9.2.2).
func mayRepeat(r *http.Request) bool {
	return !hasBody(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions)
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// A switchedBody is the connection after a switch of protocols. It may be closed at any time.
type switchedBody struct{ e *exchange }

func (s switchedBody) Read(p []byte) (int, error)  { return s.e.c.in.Read(p) }
func (s switchedBody) Write(p []byte) (int, error) { return s.e.c.conn.Write(p) }

func (s switchedBody) Close() error {
	s.e.abandon()
	return nil
}
