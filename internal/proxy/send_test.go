package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestRequestsWithABodyShareAConnection(t *testing.T) {
	addr, connections := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		b, _ := io.ReadAll(r.Body)
		text := fmt.Sprintf("%s %v %s %s", b, r.TransferEncoding, r.Trailer.Get("X-End"), r.Header.Get("Expect"))
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text), nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	const post = "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	for request, want := range map[string]string{
		post + "Content-Length: 3\r\n\r\nabc": "abc []  ",
		post + "Content-Length: 0\r\n\r\n":    " []  ",
		post + "Transfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n3\r\nabc\r\n0\r\nX-End: z\r\n\r\n": "abc [chunked] z ",
	} {
		if code, body := w.ask(request); code != 200 || body != want {
			t.Errorf("%q: %d %q, want %q", request, code, body, want)
		}
	}
	if n := connections.Load(); n > 2 { // a request may come before the last one's connection is put back
		t.Errorf("%d connections", n)
	}
}

func TestAClientThatWaitsForContinueIsToldTo(t *testing.T) {
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		b, _ := io.ReadAll(r.Body)
		if b = append(b, r.Header.Get("Expect")...); len(b) == 0 {
			t.Error("no body")
		}
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b), nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	c, r := w.raw("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
	if line, err := r.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatal(line, err)
	}
	r.ReadString('\n')
	io.WriteString(c, "abc")
	if code, body := answerOf(r); code != 200 || body != "abc" {
		t.Error(code, body)
	}
}

func TestAnAnswerBeforeTheBodysEndIsPassedOn(t *testing.T) {
	answered := make(chan bool, 10)
	addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) {
		return hello, func(net.Conn) { answered <- true }
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	c, r := w.raw("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 100000\r\n\r\nabc")
	<-answered
	c.Write(make([]byte, 100000-3))
	if code, body := answerOf(r); code != 200 || body != "hello" {
		t.Error(code, body)
	}
	if got := w.fetch("GET"); got != "200 hello" {
		t.Errorf("%q on a connection on which a body was left unread", got)
	}
}

// TestABodyWithoutEndLeavesNoConnection: what came next on it would be the body's.
func TestABodyWithoutEndLeavesNoConnection(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
	secure := w.server.TLS.Clone()
	secure.NextProtos = []string{"http/1.1"}
	l := tls.NewListener(listen(t), secure)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					io.WriteString(c, hello)
					io.Copy(io.Discard, c)
				}
			}()
		}
	}()
	w.put("example.com", 443, l.Addr().String())
	c := w.inside()
	for range 2 {
		body, more := io.Pipe()
		res, err := c.Post("https://example.com/", "text/plain", body)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		io.Copy(io.Discard, res.Body)
		more.Close()
		res.Body.Close()
	}
}

// TestARequestWithABodyIsMadeOnce: a server that hung up may have done what it says.
func TestARequestWithABodyIsMadeOnce(t *testing.T) {
	var posts atomic.Int32
	addr, _ := scripted(t, func(_, k int, r *http.Request) (string, func(net.Conn)) {
		if r.Method == "POST" || r.Method == "DELETE" {
			posts.Add(1)
			return "", func(c net.Conn) { c.Close() }
		}
		return hello, nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	for _, request := range []string{"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc", "DELETE http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"} {
		w.fetch("GET") // there is a connection that is kept
		posts.Store(0)
		if code, _ := w.ask(request); code != 502 || posts.Load() != 1 {
			t.Errorf("%.6s: %d, made %d times", request, code, posts.Load())
		}
	}
}

// TestAResponseIsToItsRequestInTLS: a second response within what was received
// already is seen by nobody who asks the kernel.
func TestAResponseIsToItsRequestInTLS(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
		secure := w.server.TLS.Clone()
		secure.NextProtos = []string{"http/1.1"}
		l := listen(t)
		var connections atomic.Int32
		go func() {
			for {
				raw, err := l.Accept()
				if err != nil {
					return
				}
				n := connections.Add(1)
				go func() {
					together := &corked{Conn: raw}
					c := tls.Server(together, secure)
					defer c.Close()
					in := bufio.NewReader(c)
					for {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						io.Copy(io.Discard, r.Body)
						if n == 1 {
							together.hold.Store(true)
							io.WriteString(c, hello)
							io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
							together.flush()
							continue
						}
						io.WriteString(c, hello)
					}
				}()
			}
		}()
		w.put("example.com", 443, l.Addr().String())
		c := w.inside()
		for range 3 {
			if res, body := w.do(c, method, "https://example.com/", nil); res.StatusCode != 200 || body != "hello" {
				t.Errorf("%s: %s %q", method, res.Status, body)
			}
		}
		if n := connections.Load(); n < 2 || n > 3 {
			t.Errorf("%s: %d connections", method, n)
		}
	}
}

// A corked connection sends what it holds in one piece.
type corked struct {
	net.Conn
	hold atomic.Bool
	held bytes.Buffer
}

func (c *corked) Write(p []byte) (int, error) {
	if c.hold.Load() {
		return c.held.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *corked) flush() {
	c.hold.Store(false)
	c.held.WriteTo(c.Conn)
}
