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

// A direct carries GET and HEAD requests of plain HTTP in the goroutine that has
// them. http.Transport has two goroutines for each connection, and each step from
// one to the other may wake a thread, which on a machine with few processors costs
// more than the request. All other requests are its next one's.
//
// It writes requests and reads responses by net/http's own functions.
type direct struct {
	g    *Gateway
	next http.RoundTripper

	mu     sync.Mutex
	closed bool
	idle   map[string][]*upstream // by host and port; the last used comes last
	total  int
}

// An upstream is a connection to a server. One at a time has it.
type upstream struct {
	net.Conn
	in   *bufio.Reader
	head io.LimitedReader // what in reads from; bounds a response's head
	used bool
	old  *time.Timer // closes it when it has been idle for too long
}

const (
	mostIdle   = 128 // connections, to all hosts
	idleWait   = 30 * time.Second
	mostHead   = 256 << 10
	mostHints  = 5 // responses before the response: 103 and the like
	headBuffer = 16 << 10
)

// plain reports whether a request is of the kind that is carried here.
func plain(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.Body == nil || r.Body == http.NoBody) &&
		len(r.Trailer) == 0 && r.Header.Get("Upgrade") == "" && r.Header.Get("Expect") == ""
}

// RoundTrip carries one request. A connection that was kept may have been closed
// by the server meanwhile: then another is made, since these requests may be made
// twice.
func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r.Context())
	if !plain(r) {
		return d.next.RoundTrip(r)
	}
	for {
		u, err := d.take(r.Context(), x)
		if err != nil {
			return nil, err
		}
		x.event.Address = u.RemoteAddr().String()
		res, err := d.ask(u, r, x.shown())
		if err == nil || !u.used || r.Context().Err() != nil || !errors.Is(err, errNothing) {
			return res, err
		}
	}
}

// errNothing: the server has closed the connection without a word.
var errNothing = errors.New("the server closed the connection")

// ask sends the request and reads the response's head. The connection goes back,
// or ends, with the body.
func (d *direct) ask(u *upstream, r *http.Request, key string) (*http.Response, error) {
	stop := context.AfterFunc(r.Context(), func() { u.Close() })
	fail := func(err error) (*http.Response, error) {
		stop()
		u.Close()
		if cause := r.Context().Err(); cause != nil {
			err = cause
		}
		return nil, err
	}
	if err := r.Write(u.Conn); err != nil {
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
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			u.head.N = 1 << 62
			res.Body = &rest{ReadCloser: res.Body, d: d, u: u, key: key, stop: stop, last: res.Close || r.Close || res.StatusCode < 200}
			return res, nil
		}
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
	d    *direct
	u    *upstream
	key  string
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
	if live := a.stop(); !live || !whole || a.last || a.u.in.Buffered() > 0 || !a.d.keep(a.key, a.u) {
		a.u.Close()
	}
}

// take returns a connection that was kept, or a new one.
func (d *direct) take(ctx context.Context, x *exchange) (*upstream, error) {
	key := x.shown()
	for u := d.kept(key); u != nil; u = d.kept(key) {
		// What a server says without being asked, its end too, is not the response to
		// the next request.
		if u.old.Stop() && silent(u.Conn) {
			u.used = true
			return u, nil
		}
		u.Close()
	}
	conn, err := d.g.dialHTTP(ctx, "tcp", key)
	if err != nil {
		return nil, err
	}
	u := &upstream{Conn: conn, head: io.LimitedReader{R: conn}}
	u.in = bufio.NewReaderSize(&u.head, headBuffer)
	return u, nil
}

// kept takes out the connection that was used last; nil: there is none.
func (d *direct) kept(key string) *upstream {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.idle[key]
	if len(list) == 0 {
		return nil
	}
	u := list[len(list)-1]
	d.put(key, list[:len(list)-1])
	return u
}

// put sets a host's list, and keeps count. The lock is held.
func (d *direct) put(key string, list []*upstream) {
	if d.idle == nil {
		d.idle = map[string][]*upstream{}
	}
	d.total += len(list) - len(d.idle[key])
	if d.idle[key] = list; len(list) == 0 {
		delete(d.idle, key)
	}
}

// keep keeps a connection for the next request; false: there are enough.
func (d *direct) keep(key string, u *upstream) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.total >= mostIdle {
		return false
	}
	d.put(key, append(d.idle[key], u))
	u.old = time.AfterFunc(idleWait, func() { d.drop(key, u) })
	return true
}

// drop closes a connection that nobody has wanted.
func (d *direct) drop(key string, u *upstream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.idle[key], u); i >= 0 {
		d.put(key, slices.Concat(d.idle[key][:i], d.idle[key][i+1:]))
		u.Close()
	}
}

// close closes what is idle, and keeps nothing any more.
func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, list := range d.idle {
		for _, u := range list {
			u.old.Stop()
			u.Close()
		}
	}
	d.idle, d.total = nil, 0
}
