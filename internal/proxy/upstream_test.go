package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// scripted is a server that answers each request with what say returns, and is
// asked for more once that has been written.
func scripted(t *testing.T, say func(connection, request int, r *http.Request) (text string, after func(c net.Conn))) (addr string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(connections.Add(1))
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for k := 1; ; k++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					text, after := say(n, k, r)
					io.WriteString(c, text)
					if after != nil {
						after(c)
					}
				}
			}()
		}
	}()
	return l.Addr().String(), connections
}

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func TestRequestsWithoutABodyShareAConnection(t *testing.T) {
	addr, connections := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		if r.Method == http.MethodHead {
			return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", nil
		}
		return "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + hello, nil
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	for range 3 {
		if got := w.fetch("GET"); got != "200 hello" {
			t.Fatal(got)
		}
		if got := w.fetch("HEAD"); got != "200 " {
			t.Fatal(got)
		}
	}
	if n := connections.Load(); n > 3 { // a request may come before the last one's connection is put back
		t.Errorf("%d connections", n)
	}
}

// TestAResponseIsToItsRequest: what a server says without being asked must not
// become the response to the next request.
func TestAResponseIsToItsRequest(t *testing.T) {
	for _, c := range []struct {
		name        string
		text        string
		after       func(c net.Conn)
		connections int32
	}{
		{"bytes after the body", hello + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", nil, 2},
		{"the end of a connection that is kept", hello, func(c net.Conn) { c.Close() }, 2},
		{"a connection that is said to end", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", nil, 2},
		{"a body that ends with the connection", "HTTP/1.0 200 OK\r\n\r\nhello", func(c net.Conn) { c.Close() }, 2},
		{"nothing of the kind", hello, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, connections := scripted(t, func(n, _ int, _ *http.Request) (string, func(net.Conn)) {
				if n == 1 {
					return c.text, c.after
				}
				return hello, nil
			})
			w := newWorld(t, Config{}, "example.com")
			w.put("example.com", 80, addr)
			for range 2 {
				if got := w.fetch("GET"); got != "200 hello" {
					t.Errorf("got %q", got)
				}
			}
			if n := connections.Load(); n < c.connections || n > 2 {
				t.Errorf("%d connections, want %d", n, c.connections)
			}
		})
	}
}

func TestABadHeadIsA502ThatDoesNotQuoteIt(t *testing.T) {
	for name, text := range map[string]string{
		"no HTTP":     "SECRET\r\n\r\n",
		"a long head": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("SECRET", maxHeadBytes/6+1) + "\r\n\r\n",
		"hints alone": strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <SECRET>\r\n\r\n", 50),
		"a switch":    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SECRET\r\nConnection: upgrade\r\n\r\n",
		"two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nSECRET",
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) { return text, nil })
			w := newWorld(t, Config{}, "example.com")
			w.put("example.com", 80, addr)
			if got := w.fetch("GET"); !strings.HasPrefix(got, "502 ") || strings.Contains(got, "SECRET") {
				t.Errorf("got %.200q", got)
			}
			for _, e := range w.ended() {
				if strings.Contains(fmt.Sprint(e), "SECRET") {
					t.Errorf("an event quotes it: %.200v", e)
				}
			}
		})
	}
}

func TestAKeptConnectionEndsWithTheGateway(t *testing.T) {
	ended := make(chan error, 1)
	addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) {
		return hello, func(c net.Conn) {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	if got := w.fetch("GET"); got != "200 hello" {
		t.Fatal(got)
	}
	w.g.Close()
	if err := <-ended; err == nil {
		t.Error("the server was told something")
	}
}

// fetch asks example.com for something by the proxy.
func (w *world) fetch(method string) string {
	w.t.Helper()
	r, err := http.NewRequest(method, "http://example.com/", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.client(nil).Do(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", res.StatusCode, b)
}

// TestAnEarlyAnswerIsNotKeptBack: a server may refuse an upload before it has come,
// and the client may wait for that before it sends more.
func TestAnEarlyAnswerIsNotKeptBack(t *testing.T) {
	kerneltest.Long(t)
	for name, body := range map[string]string{"a length": "Content-Length: 1000000\r\n\r\nsome", "chunks": "Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"} {
		t.Run(name, func(t *testing.T) {
			addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) {
				return "HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nhello", func(c net.Conn) { io.Copy(io.Discard, c) }
			})
			w := newWorld(t, Config{}, "example.com")
			w.put("example.com", 80, addr)
			if code, text := w.ask("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n" + body); code != 413 || text != "hello" {
				t.Error(code, text)
			}
		})
	}
}
