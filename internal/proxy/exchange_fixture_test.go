package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A sender sends requests by an originTransport to one server, in clear text or in TLS.
type sender struct {
	*originTransport
	t           *testing.T
	g           *Proxy
	connections atomic.Int32 // that were made
	requests    atomic.Int32 // that the server has read
}

// newSender makes one whose server runs serve for each connection; n counts them from 1.
func newSender(t *testing.T, w *secureWorld, secure bool, serve func(n int, c *servedConn)) *sender {
	t.Helper()
	s := &sender{t: t, g: w.g}
	l := listen(t)
	go func() {
		for n := 1; ; n++ {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			together := &corked{Conn: raw}
			c := &servedConn{Conn: together, s: s, together: together}
			if secure {
				c.Conn = tls.Server(together, w.server.TLS)
			}
			c.in = bufio.NewReader(c.Conn)
			go func() {
				defer c.Close()
				serve(n, c)
			}()
		}
	}()
	s.originTransport = &originTransport{dial: func(ctx context.Context) (*originConn, error) {
		s.connections.Add(1)
		raw, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		metered := newMeteredConn(raw, w.g)
		if !secure {
			return newOriginConn(metered, metered, ""), nil
		}
		c := tls.Client(metered, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{h1}})
		return newOriginConn(c, metered, ""), c.HandshakeContext(ctx)
	}}
	t.Cleanup(s.idle.close)
	return s
}

// request makes a request; no body if that is empty.
func (s *sender) request(ctx context.Context, method, body string) *http.Request {
	x := &proxiedRequest{g: s.g}
	var from io.Reader
	if body != "" {
		from = &uploadBody{ReadCloser: io.NopCloser(strings.NewReader(body)), x: x, from: new(http.Request)}
	}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, requestKey{}, x), method, "http://example.com/", from)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.ContentLength = int64(len(body))
	}
	return r
}

// send sends a request, and reads its response to the end.
func (s *sender) send(method, body string) (status int, text string, err error) {
	r := s.request(s.t.Context(), method, body)
	res, err := s.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	s.g.headerBudget.release(requestOf(r.Context()).heads)
	return res.StatusCode, string(b), err
}

// kept is how many connections wait for another request.
func (s *sender) kept() int {
	s.idle.mu.Lock()
	defer s.idle.mu.Unlock()
	return len(s.idle.conns)
}

// A servedConn is a server's connection.
type servedConn struct {
	net.Conn
	s        *sender
	in       *bufio.Reader
	together *corked // below TLS, if there is any
}

// asked reads a request with its body; false: the connection has ended.
func (c *servedConn) asked() bool {
	r, err := http.ReadRequest(c.in)
	if err != nil {
		return false
	}
	c.s.requests.Add(1)
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// say writes texts, each by itself but received at once.
func (c *servedConn) say(texts ...string) {
	c.together.hold.Store(true)
	for _, s := range texts {
		io.WriteString(c.Conn, s)
	}
	c.together.flush()
}

// answers answers requests until the connection ends.
func (c *servedConn) answers() {
	for c.asked() {
		c.say(hello)
	}
}

// inBoth runs a test for a server in clear text, and for one in TLS.
func inBoth(t *testing.T, do func(t *testing.T, w *secureWorld, secure bool)) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
	t.Run("in clear text", func(t *testing.T) { do(t, w, false) })
	t.Run("in TLS", func(t *testing.T) { do(t, w, true) })
	if used := w.g.headerBudget.used.Load(); used != 0 {
		t.Errorf("%d bytes of headers are not given back", used)
	}
}
