package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// logged has the program's own log, which net/http writes to, kept until the test's end,
// at which nothing may stand in it.
func logged(t *testing.T) *lockedBuffer {
	t.Helper()
	said := &lockedBuffer{}
	log.SetOutput(said)
	t.Cleanup(func() {
		log.SetOutput(os.Stderr)
		if s := said.String(); s != "" {
			t.Errorf("the harness's log: %.300q", s)
		}
	})
	return said
}

// A stranger is a server's connection of which the test says what becomes of it. It
// has read one request.
type stranger struct {
	net.Conn
	in    *bufio.Reader
	asked *http.Request
}

// say writes, and answers nothing further until the other side has hung up.
func (s *stranger) say(text string) { io.WriteString(s.Conn, text); s.hungUp() }

// hungUp reads until the other side has closed.
func (s *stranger) hungUp() { io.Copy(io.Discard, s.in) }

// echoed is what the server was given: the secret, where it was. It is a head too, of
// no response.
func (s *stranger) echoed() string { return "JUNK " + s.asked.Header.Get("Authorization") + "\r\n\r\n" }

// strangers are servers of HTTP/1 that do what none should. Each is done when its
// connection has been closed by the proxy.
var strangers = map[string]func(s *stranger){
	"bytes after the length": func(s *stranger) { s.say(hello + s.echoed() + "\r\n\r\n") },
	"a second response":      func(s *stranger) { s.say(hello + hello + s.echoed() + "\r\n\r\n") },
	"bytes in a record of their own": func(s *stranger) {
		io.WriteString(s.Conn, hello)
		s.say(s.echoed())
	},
	"bytes after the last chunk": func(s *stranger) {
		s.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + s.echoed())
	},
	"a body with 304":  func(s *stranger) { s.say("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n" + s.echoed()) },
	"a body with 204":  func(s *stranger) { s.say("HTTP/1.1 204 No Content\r\n\r\n" + s.echoed()) },
	"no body promised": func(s *stranger) { s.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + s.echoed()) },
	"a chunk that is none": func(s *stranger) {
		s.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + s.echoed() + "\r\n")
	},
	"a chunk without its end": func(s *stranger) {
		io.WriteString(s.Conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
	},
	"a body that is cut off": func(s *stranger) { io.WriteString(s.Conn, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello") },
	"no answer":              func(s *stranger) {},
	"no HTTP":                func(s *stranger) { s.say(s.echoed() + "\r\n\r\n") },
	"a malformed field":      func(s *stranger) { s.say("HTTP/1.1 200 OK\r\n" + s.echoed() + "\r\n\r\n") },
	"two lengths":            func(s *stranger) { s.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!") },
	"a malformed trailer": func(s *stranger) {
		s.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n " + s.echoed() + "\r\n\r\n")
	},
	"hints without end": func(s *stranger) {
		s.say(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 50) + s.echoed() + "\r\n\r\n")
	},
	"an odd hint": func(s *stranger) {
		s.say("HTTP/1.1 199 JUNK\r\nContent-Length: 5\r\n\r\n" + hello + s.echoed() + "\r\n\r\n")
	},
	"a switch": func(s *stranger) {
		s.say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: junk\r\n\r\n" + s.echoed() + "\r\n\r\n")
	},
	"time is up": func(s *stranger) {
		s.say(hello + "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n" + s.echoed())
	},
	"time is up, for an answer": func(s *stranger) {
		io.WriteString(s.Conn, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"+s.echoed())
	},
	"a close that is none": func(s *stranger) {
		s.say("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello" + s.echoed())
	},
}

// strange serves a stranger's behaviour, to the first request alone, and returns
// where, and a channel that is closed when it is through.
func strange(t *testing.T, secure *tls.Config, does func(*stranger)) (string, <-chan struct{}) {
	l := listen(t)
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	through := make(chan struct{})
	first := true
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			odd := first
			first = false
			go func() {
				defer c.Close()
				s := &stranger{Conn: c, in: bufio.NewReader(c)}
				if odd {
					defer close(through)
				}
				for {
					if s.asked, err = http.ReadRequest(s.in); err != nil {
						return
					}
					io.Copy(io.Discard, s.asked.Body)
					if odd {
						does(s)
						return
					}
					io.WriteString(c, hello)
				}
			}()
		}
	}()
	return l.Addr().String(), through
}

func TestNothingThatAServerSaysIsLogged(t *testing.T) {
	kerneltest.Long(t)
	for name, does := range strangers {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			for _, scheme := range []string{"http", "https"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, method, scheme), func(t *testing.T) {
					t.Cleanup(func() {}) // before the log's, which is looked at when all is closed
					said := logged(t)
					w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
					secure := w.server.TLS.Clone()
					secure.NextProtos = []string{"http/1.1"}
					if scheme == "http" {
						secure = nil
					}
					addr, through := strange(t, secure, does)
					w.put("example.com", 80, addr)
					w.put("example.com", 443, addr)
					c := w.inside()
					for range 2 { // the second one needs a connection that was not spoilt
						strangelyAsk(t, c, method, scheme, w.placeholder)
					}
					c.CloseIdleConnections()
					select {
					case <-through:
					case <-time.After(time.Minute):
						t.Error("the server's connection is kept")
					}
					if strings.Contains(said.String(), "value-of-the-user") {
						t.Error("the secret is in the log")
					}
				})
			}
		}
	}
}

// strangelyAsk sends one request; what comes of it does not matter.
func strangelyAsk(t *testing.T, c *http.Client, method, scheme, placeholder string) {
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader("a body")
	}
	r, err := http.NewRequest(method, scheme+"://example.com/", body)
	if err != nil {
		t.Fatal(err)
	}
	if scheme == "https" {
		r.Header.Set("Authorization", "Bearer "+placeholder)
	}
	// What a server has said too early can pass for the next request's response, whose body has no end.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if res, err := c.Do(r.WithContext(ctx)); err == nil {
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}

// TestNothingThatAClientDoesIsLogged: net/http's server has a log of its own, which
// nobody reads.
func TestNothingThatAClientDoesIsLogged(t *testing.T) {
	logged(t)
	w := newSecureWorld(t, Config{
		Network: policy.Network{
			Credentials: bearer(),
			Decide:      func(context.Context, policy.Request) policy.Verdict { panic("JUNK") },
			Observe:     func(policy.Connection) { panic("JUNK") },
		},
	}, func(rw http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.ask("JUNK\r\n\r\n")
	w.ask("GET http://unknown.example/ HTTP/1.1\r\nHost: unknown.example\r\n\r\n")
	w.ask("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\nJUNK\r\n")
	conn, _ := w.connect("example.com:443")
	io.WriteString(conn, "\x16\x03\x01JUNK")
	conn.Close()
	if _, err := w.tls("example.com:443", "evil.example"); err == nil {
		t.Error("a handshake for another name")
	}
	for _, text := range []string{preface + "\x00\x00\x04\x00\x00\x00\x00\x00\x01JUNK", preface + hello, "JUNK"} {
		c, err := w.tls("example.com:443", "example.com")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)
		c.CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	w.do(w.inside(), "GET", "https://example.com/", nil)
	w.g.Close()
}
