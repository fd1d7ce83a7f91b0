package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A session is a client of the HTTP proxy whose requests have all been plain so
// far: GET or HEAD for a whole URL, without a body, and perhaps a CONNECT at their
// end. They are read, carried and answered by one goroutine. With net/http's server and transport four have a part
// in each, and a goroutine that wakes another wakes a thread too, which costs more
// than the request where processors are few. The first request of another
// kind, and all that follow it, are net/http's.
//
// Messages are read and written by net/http's own functions here as well.
type session struct {
	g      *Gateway
	c      *strict
	ctx    context.Context // ends with the client's connection
	cancel context.CancelFunc
	until  time.Time // until when a request may take to come, as it was set last

	mu      sync.Mutex
	busy    bool // with a request
	looking bool // at whether the client is still there
	look    *time.Timer
}

const (
	mostPlain = 4 << 10     // bytes of a plain request, which come at once
	lookTime  = time.Second // between two looks at a client that waits for its response
)

// serveProxy serves a client of the HTTP proxy, from its first request on.
func (g *Gateway) serveProxy(c *strict) {
	s := &session{g: g, c: c}
	s.ctx, s.cancel = context.WithCancel(g.ctx)
	defer s.cancel()
	defer func() {
		if recover() != nil { // as net/http has it, the connection ends and the program does not
			c.Close()
		}
	}()
	read := make([]byte, mostPlain)
	for wait := headerTime; ; wait = keptTime {
		s.await(wait)
		n, err := c.Read(read)
		if n == 0 && err != nil && c.faulted() == nil {
			c.Close()
			return
		}
		r, rest := plainRequest(read[:n])
		if r == nil || err != nil || !c.named() || !g.knows(r.Header.Get("Proxy-Authorization")) {
			c.unread(read[:n])
			g.queue.push(c)
			return
		}
		if r.Method == http.MethodConnect {
			s.connect(r, bytes.Clone(rest))
			return
		}
		c.unread(rest)
		if !s.serve(r) {
			c.Close()
			return
		}
	}
}

// await sets the deadline of the next request, when the last one is not far
// enough away.
func (s *session) await(wait time.Duration) {
	if now := time.Now(); s.until.Sub(now) < wait*3/4 {
		s.until = now.Add(wait)
		s.c.SetReadDeadline(s.until)
	}
}

// plainRequest parses a request if it is there as a whole and plain, and returns
// what follows it.
func plainRequest(b []byte) (r *http.Request, rest []byte) {
	if !slices.ContainsFunc(plainBegins, func(s []byte) bool { return bytes.HasPrefix(b, s) }) {
		return nil, nil
	}
	head, rest, whole := bytes.Cut(b, []byte("\r\n\r\n"))
	if !whole {
		return nil, nil
	}
	in := readers.Get().(*bufio.Reader)
	defer readers.Put(in)
	in.Reset(bytes.NewReader(b[:len(head)+4]))
	r, err := http.ReadRequest(in)
	if err != nil || !plain(r) {
		return nil, nil
	}
	return r, rest
}

var plainBegins = [][]byte{[]byte("GET http://"), []byte("HEAD http://"), []byte("CONNECT ")}

// plain reports whether a request is of the kind that a session carries.
func plain(r *http.Request) bool {
	for _, name := range []string{"Upgrade", "Expect", "Te", "Trailer"} {
		if r.Header[name] != nil {
			return false
		}
	}
	for _, v := range r.Header["Connection"] {
		if !strings.EqualFold(v, "keep-alive") {
			return false
		}
	}
	return r.ProtoAtLeast(1, 1) && r.Body == http.NoBody && len(r.Trailer) == 0 && !r.Close
}

// serve answers a request; false: it was the connection's last.
func (s *session) serve(r *http.Request) bool {
	s.begin()
	defer s.end()
	x, wrong := s.g.absolute(s.ctx, s.c, r, s.c.host())
	if wrong != nil {
		return s.send(wrong.response(r), nil, nothing)
	}
	x.admit(r)
	var res *http.Response
	var from *upstream
	if x.err == nil {
		res, from, x.err = s.ask(x, r)
	}
	if x.err != nil {
		return s.send(answerTo(x.err, x.shown()).response(r), nil, x.end)
	}
	defer res.Body.Close()
	res.Body = &counted{res.Body, &x.received, &x.err}
	return s.send(res, from.in, x.end)
}

func nothing() {}

// connect answers a CONNECT, which is the session's last request.
func (s *session) connect(r *http.Request, head []byte) {
	s.begin()
	u, shown, err := s.g.openConnect(s.ctx, r, s.c.host())
	s.end()
	s.g.tunnel(s.c, head, u, shown, err)
}

// ask makes the request that goes out, judges it, and returns its response.
func (s *session) ask(x *exchange, r *http.Request) (*http.Response, *upstream, error) {
	withoutHops(r.Header)
	r.URL.Scheme, r.URL.Host, r.Host = x.scheme, x.shown(), x.authority
	if r.Header["User-Agent"] == nil {
		r.Header["User-Agent"] = []string{""} // else it were Go's
	}
	if s.g.screen != nil {
		if err := s.g.screen(r, x.target); err != nil {
			return nil, nil, err
		}
	}
	res, from, err := s.g.pool.ask(s.ctx, x, x.shown(), r, s.hint)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		res.Body.Close()
		return nil, nil, errSwitched
	}
	withoutHops(res.Header)
	return res, from, nil
}

// hint passes a response before the response on.
func (s *session) hint(res *http.Response) {
	withoutHops(res.Header)
	s.send(res, nil, nothing)
}

// withoutHops takes out what one side says to the other alone (RFC 9110, 7.6.1).
func withoutHops(h http.Header) {
	for _, list := range slices.Clone(h["Connection"]) {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(h, name)
	}
}

// send writes a response to the client. What is buffered is sent on before more is
// waited for: in is what the response's body is read from, nil if it is at hand. done
// is called before the client can know of the end.
func (s *session) send(res *http.Response, in *bufio.Reader, done func()) bool {
	res.Status, res.Proto, res.ProtoMajor, res.ProtoMinor, res.Close = "", "HTTP/1.1", 1, 1, false
	if res.TransferEncoding = nil; res.ContentLength < 0 {
		res.TransferEncoding = []string{"chunked"}
	}
	out := writerTo(s.c)
	defer writers.Put(out)
	if in != nil {
		res.Body = &prompt{ReadCloser: res.Body, in: in, out: out}
	}
	err := res.Write(justWriter{out})
	done()
	flushed := out.Flush() // the part that there is of a body that breaks off, too
	return err == nil && flushed == nil
}

// Readers and writers hold a head, or a part of a body, for as long as that is
// read or written.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, mostPlain) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, mostPlain) }}
)

func writerTo(w io.Writer) *bufio.Writer {
	out := writers.Get().(*bufio.Writer)
	out.Reset(w)
	return out
}

// justWriter hides that a bufio.Writer can read from a Reader, which it does in
// pieces of its own size.
type justWriter struct{ io.Writer }

// A prompt body has what was written of it flushed before it waits for more.
type prompt struct {
	io.ReadCloser
	in    *bufio.Reader
	out   *bufio.Writer
	ended bool
}

func (b *prompt) Read(p []byte) (int, error) {
	if b.in.Buffered() == 0 && b.out.Buffered() > 0 && !b.ended {
		if err := b.out.Flush(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.ended = err != nil
	return n, err
}

// begin has a look taken at the client now and then, until end: when it has gone,
// nobody waits for the response.
func (s *session) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = true; s.looking {
		return
	}
	if s.looking = true; s.look == nil {
		s.look = time.AfterFunc(lookTime, s.watch)
		return
	}
	s.look.Reset(lookTime)
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// watch is one look. It is not taken back at the end of each request, which takes
// longer than some requests do.
func (s *session) watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looking = s.busy; !s.busy {
		return
	}
	if gone(s.c) {
		s.cancel()
		return
	}
	s.look.Reset(lookTime)
}
