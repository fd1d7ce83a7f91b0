package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestInterimAnswersToARequestWithABodyAreNotPassedOn: they would be written by the transport's
// goroutine, beside the one that reads the request's body and tells the client to
// send it.
func TestInterimAnswersToARequestWithABodyAreNotPassedOn(t *testing.T) {
	const post = "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		io.Copy(io.Discard, r.Body)
		return "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + hello, nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	s := newSecureWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "example.com"}}}}, func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.WriteHeader(http.StatusEarlyHints)
		io.WriteString(rw, "hello")
	})
	for name, open := range map[string]func() (net.Conn, *bufio.Reader){
		"by the proxy": func() (net.Conn, *bufio.Reader) { return w.raw("") },
		"in a tunnel":  func() (net.Conn, *bufio.Reader) { return w.connect("example.com:80") },
		"in TLS": func() (net.Conn, *bufio.Reader) {
			c, err := s.tls("example.com:443", "example.com", "http/1.1")
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(time.Minute))
			return c, bufio.NewReader(c)
		},
	} {
		c, r := open()
		text := post
		if name == "in TLS" {
			text = "POST / HTTP/1.1\r\n" + post[len("POST http://example.com/ HTTP/1.1\r\n"):]
		}
		io.WriteString(c, text)
		if code, _ := answerOf(r); code != http.StatusContinue {
			t.Errorf("%s: the client is told %d and not to go on", name, code)
		}
		io.WriteString(c, "hello")
		if code, body := answerOf(r); code != 200 || body != "hello" {
			t.Errorf("%s: %d %q", name, code, body)
		}
	}
}
