package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A pool keeps connections to servers of HTTP/1 open, by host and port, for requests
// that are written and whose responses are read in one goroutine, by net/http's own
// functions; a body is written by a second one (send.go). http.Transport is not used:
// what a server sends without being asked, which may be a secret, it writes to the
// program's own log. Here nobody reads that.
type pool struct {
	mu     sync.Mutex
	closed bool
	idle   map[string][]*upstream // by host and port; the last used comes last
	total  int

	sweeper *time.Timer // nil: nothing is idle, or was not when it was looked at
}

// An upstream is a connection to a server. One at a time has it.
type upstream struct {
	net.Conn
	in   *bufio.Reader
	head io.LimitedReader // what in reads from; bounds a response's head

	place string    // where it goes, for events
	used  bool      // for a request before
	since time.Time // when it became idle
}

const (
	mostIdle   = 128 // connections, to all hosts
	idleWait   = 30 * time.Second
	mostHead   = 256 << 10
	mostHints  = 5 // responses before the response: 103 and the like
	headBuffer = 16 << 10
)

// A destination is where a request goes.
type destination interface {
	reach(context.Context) (net.Conn, string, error) // makes a connection, and says to where
	reached(*upstream)                               // tells which one the request has
}

// ask sends a request, and reads the head of its response. A connection that was kept
// may have been closed by the server meanwhile: then another is made, if the request
// may be made twice. Responses before the response are told to hint.
func (p *pool) ask(ctx context.Context, to destination, key string, r *http.Request, hint func(*http.Response)) (*http.Response, *upstream, error) {
	for {
		u, err := p.take(ctx, to, key)
		if err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, nil, err
		}
		to.reached(u)
		res, err := p.on(ctx, u, r, key, hint)
		if err == nil || !u.used || !repeatable(r) || ctx.Err() != nil || !errors.Is(err, errNothing) {
			return res, u, err
		}
	}
}

// bodiless reports whether a request is its header alone.
func bodiless(r *http.Request) bool { return r.Body == nil || r.Body == http.NoBody }

// repeatable reports whether a request may be made twice.
func repeatable(r *http.Request) bool {
	return bodiless(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions)
}

// errNothing: the server has closed the connection without a word.
var errNothing = errors.New("the server closed the connection")

// on asks one connection, which goes back, or ends, with the response's body.
func (p *pool) on(ctx context.Context, u *upstream, r *http.Request, key string, hint func(*http.Response)) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() { u.Close() })
	s, err := u.send(r)
	fail := func(err error) (*http.Response, error) {
		stop()
		u.Close()
		if cause := ctx.Err(); cause != nil {
			err = cause
		} else if fault := s.fault(); fault != nil {
			err = fault
		}
		return nil, err
	}
	if err != nil {
		return fail(fmt.Errorf("%w: %w", errNothing, err))
	}
	u.head.N = mostHead
	if _, err := u.in.Peek(1); err != nil {
		return fail(fmt.Errorf("%w: %w", errNothing, err))
	}
	for range mostHints + 1 {
		res, err := http.ReadResponse(u.in, r)
		if err != nil {
			return fail(u.headError(err))
		}
		if res.StatusCode < 100 {
			return fail(errStatus)
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			u.head.N = 1 << 62
			res.Body = &taken{upstream: u, stop: stop}
			return res, nil
		}
		if res.StatusCode >= 200 {
			u.head.N = 1 << 62
			res.Body = &rest{ReadCloser: res.Body, p: p, u: u, key: key, sent: s, stop: stop, last: res.Close || r.Close}
			return res, nil
		}
		hint(res)
	}
	return fail(errHints)
}

// headError says what was wrong with a response's head without quoting it.
func (u *upstream) headError(err error) error {
	if u.head.N <= 0 {
		return errors.New("the response's head is too long")
	}
	if n := net.Error(nil); errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errBytes) {
		return err
	}
	return errors.New("the response is malformed")
}

// A rest is a response's body. Read to its end it gives the connection back.
type rest struct {
	io.ReadCloser
	p    *pool
	u    *upstream
	key  string
	sent *sending
	stop func() bool
	last bool
	done bool
}

// Read reads, and notices the end.
func (a *rest) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.finish(err == io.EOF)
	}
	return n, err
}

// Close ends the connection if there is more to be read.
func (a *rest) Close() error {
	a.finish(a.ReadCloser == http.NoBody)
	return nil
}

func (a *rest) finish(whole bool) {
	if a.done {
		return
	}
	a.done = true
	// What the server has sent beyond the response is no response to anything.
	if live := a.stop(); !live || !whole || a.last || a.u.in.Buffered() > 0 || !a.sent.whole() || !a.p.keep(a.key, a.u) {
		a.u.Close()
	}
}

// take returns a connection that was kept, or a new one.
func (p *pool) take(ctx context.Context, to destination, key string) (*upstream, error) {
	for u := p.kept(key); u != nil; u = p.kept(key) {
		// What a server says without being asked, its end too, is not the response to
		// the next request.
		if u.silent() {
			u.used = true
			return u, nil
		}
		u.Close()
	}
	conn, place, err := to.reach(ctx)
	if err != nil {
		return nil, err
	}
	u := &upstream{Conn: conn, place: place}
	u.head.R = u.Conn
	u.in = bufio.NewReaderSize(&u.head, headBuffer)
	return u, nil
}

// silent reports whether a connection is open and has nothing to be read, in the
// kernel or in what decrypts it.
func (u *upstream) silent() bool {
	s, ok := u.Conn.(*sealed)
	return silent(u.Conn) && (!ok || s.drained())
}

// kept takes out the connection that was used last; nil: there is none.
func (p *pool) kept(key string) *upstream {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[key]
	if len(list) == 0 {
		return nil
	}
	u := list[len(list)-1]
	p.put(key, list[:len(list)-1])
	return u
}

// put sets a host's list, and keeps count. The lock is held.
func (p *pool) put(key string, list []*upstream) {
	if p.idle == nil {
		p.idle = map[string][]*upstream{}
	}
	p.total += len(list) - len(p.idle[key])
	if p.idle[key] = list; len(list) == 0 {
		delete(p.idle, key)
	}
}

// keep keeps a connection for the next request; false: there are enough.
func (p *pool) keep(key string, u *upstream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.total >= mostIdle {
		return false
	}
	u.since = time.Now()
	p.put(key, append(p.idle[key], u))
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(idleWait, func() { p.sweep(time.Now()) })
	}
	return true
}

// sweep closes what has been idle for too long. One timer is enough for all: one
// for each request would cost as much as the rest of keep.
func (p *pool) sweep(now time.Time) {
	var ended []*upstream
	defer func() { // without the lock: TLS says goodbye
		for _, u := range ended {
			u.Close()
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sweeper = nil; p.closed {
		return
	}
	for key, list := range p.idle {
		old := 0
		for old < len(list) && now.Sub(list[old].since) >= idleWait {
			old++
		}
		ended = append(ended, list[:old]...)
		p.put(key, slices.Clone(list[old:]))
	}
	if p.total > 0 {
		p.sweeper = time.AfterFunc(idleWait, func() { p.sweep(time.Now()) })
	}
}

// close closes what is idle, and keeps nothing any more.
func (p *pool) close() {
	p.mu.Lock()
	all := p.idle
	p.idle, p.total = nil, 0
	if p.closed = true; p.sweeper != nil {
		p.sweeper.Stop()
	}
	p.mu.Unlock()
	for _, list := range all {
		for _, u := range list {
			u.Close()
		}
	}
}
