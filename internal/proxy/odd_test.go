package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAStatusBelowAllIsNoHint: it has a body, and to the client it would be a response
// of its own: the one after it would be to the client's next request, to whichever host.
func TestAStatusBelowAllIsNoHint(t *testing.T) {
	const odd = "HTTP/1.1 042 Odd\r\nContent-Length: 3\r\n\r\nodd"
	const plain = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	for name, request := range map[string]string{"a session": plain + "\r\n", "net/http": plain + "Connection: close\r\n\r\n"} {
		addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) { return odd + hello, nil })
		w := newWorld(t, Config{}, "example.com")
		w.put("example.com", 80, addr)
		if code, text := w.ask(request); code != 502 {
			t.Errorf("%s: %d %q", name, code, text)
		}
	}
	r := (&http.Request{URL: &url.URL{}}).WithContext(context.WithValue(t.Context(), requestKey{}, &proxiedRequest{}))
	for _, code := range []int{0, 42, 1000} {
		if modifyResponse(&http.Response{StatusCode: code, Request: r, Body: http.NoBody}) == nil {
			t.Errorf("%d passes", code)
		}
	}
}

// TestAWebSocketBeginsWithoutABody: when the server has switched, what is left of one
// would be written beside the WebSocket's own bytes.
func TestAWebSocketBeginsWithoutABody(t *testing.T) {
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		io.Copy(io.Discard, r.Body)
		if r.Header.Get("Upgrade") != "" {
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", nil
		}
		return hello, nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	const head = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
	for _, body := range []string{"Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"} {
		if code, text := w.ask(head + body); code != 200 || text != "hello" {
			t.Error(code, text)
		}
	}
	if code, _ := w.ask(head + "\r\n"); code != 101 {
		t.Error("a WebSocket:", code)
	}
}

// TestATrailerCrossesTheBoundary as the body before it does.
func TestATrailerCrossesTheBoundary(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s", b, r.Trailer.Get("X-End"))
	})
	_, body := w.do(w.inside(), "POST", "https://example.com/", func(r *http.Request) {
		r.Body, r.ContentLength, r.Trailer = io.NopCloser(strings.NewReader("abc")), -1, http.Header{"X-End": {"z"}}
	})
	if body != "abc z" {
		t.Errorf("%q", body)
	}
}

// TestARefusedBodyIsHeardOut: the client reads the refusal once it has said all, and
// goes on; it would be told nothing if the connection broke while it still sends.
func TestARefusedBodyIsHeardOut(t *testing.T) {
	told := make(chan policy.Connection, 10)
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "example.com", Methods: []string{"GET"}}}, Observe: func(e policy.Connection) { told <- e }}}, "example.com")
	w.web("example.com", 80, quick)
	c, in := w.raw("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\n")
	if e := <-told; e.Allowed {
		t.Fatalf("%+v", e)
	}
	io.WriteString(c, "0123456789GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
	for _, want := range []int{403, 200} {
		if code, text := answerOf(in); code != want {
			t.Errorf("%d %q, want %d", code, text, want)
		}
	}
}

// TestARefusedBodyIsNotWaitedForWithoutEnd: net/http would.
func TestARefusedBodyIsNotWaitedForWithoutEnd(t *testing.T) {
	w, _ := stalled(t, quick)
	for name, request := range map[string]string{
		"a host that is denied": "POST http://other.example/ HTTP/1.1\r\nHost: other.example\r\n",
		"a placeholder":         "POST http://example.com/" + w.placeholder + " HTTP/1.1\r\nHost: example.com\r\n",
		"no URL":                "POST / HTTP/1.0\r\n",
	} {
		c, in := w.raw(request + "Content-Length: 1000\r\n\r\nbegun")
		if code, _ := answerOf(in); code != 403 && code != 400 {
			t.Errorf("%s: %d", name, code)
		}
		if _, err := in.ReadByte(); err != io.EOF && !strings.Contains(fmt.Sprint(err), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
}

// TestABodyThatIsAnsweredEarlyHasNoHole: net/http reads a part of it itself, if it may,
// when the answer begins.
func TestABodyThatIsAnsweredEarlyHasNoHole(t *testing.T) {
	const pieces, size = 100, 10000
	had := make(chan string, 1)
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", func(c net.Conn) {
			n, err := io.Copy(io.Discard, r.Body)
			had <- fmt.Sprint(n, err)
			io.WriteString(c, "0\r\n\r\n")
		}
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	piece := fmt.Sprintf("%x\r\n%s\r\n", size, make([]byte, size))
	c, in := w.raw("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n" + piece)
	res, err := http.ReadResponse(in, nil)
	if err != nil { // the answer waits for the body
		t.Fatal(err)
	}
	io.WriteString(c, strings.Repeat(piece, pieces-1)+"0\r\n\r\n")
	if b, err := io.ReadAll(res.Body); string(b) != "hello" || err != nil || !res.Close {
		t.Errorf("%q %v, the last one of its connection: %v", b, err, res.Close)
	}
	if got := <-had; got != fmt.Sprint(pieces*size, nil) {
		t.Errorf("the server had %s of %d", got, pieces*size)
	}
}
