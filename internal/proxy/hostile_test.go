package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// hostile puts a server at a port of example.com that does what it likes with each
// connection: at 443 in TLS.
func (w *secureWorld) hostile(port uint16, serve func(c net.Conn)) {
	w.t.Helper()
	l := listen(w.t)
	if port == 443 {
		l = tls.NewListener(l, &tls.Config{Certificates: w.server.TLS.Certificates, NextProtos: []string{h1}})
	}
	w.serves("example.com", port, l, serve)
}

// hostileAt is hostile in a world without TLS.
func (w *world) hostileAt(name string, port uint16, serve func(c net.Conn)) {
	w.serves(name, port, listen(w.t), serve)
}

func (w *world) serves(name string, port uint16, l net.Listener, serve func(c net.Conn)) {
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	w.put(name, port, l.Addr().String())
}

// each writes one text after the other, until nobody takes it any more or there is
// enough, and returns how many bytes were written.
func each(c io.Writer, enough int, text func(i int) string) (n int) {
	for i := 0; n < enough; i++ {
		m, err := io.WriteString(c, text(i))
		if n += m; err != nil {
			break
		}
	}
	return n
}

func bytesOf(s string) func(int) string { return func(int) string { return s } }

// endless are answers of HTTP/1 that do not end.
var endless = map[string]struct {
	begin string
	more  func(i int) string
	body  bool // what does not end comes after the head, which has passed then
}{
	"hints":                {"", bytesOf("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), false},
	"continues":            {"", bytesOf("HTTP/1.1 100 Continue\r\n\r\n"), false},
	"fields":               {"HTTP/1.1 200 OK\r\n", func(i int) string { return fmt.Sprintf("X-%d: %0100d\r\n", i, i) }, false},
	"a field":              {"HTTP/1.1 200 OK\r\nX: ", bytesOf(strings.Repeat("x", 100)), false},
	"a status":             {"HTTP/1.1 200 ", bytesOf(strings.Repeat("x", 100)), false},
	"trailers":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", func(i int) string { return fmt.Sprintf("X-%d: %0100d\r\n", i, i) }, true},
	"a trailer":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ", bytesOf(strings.Repeat("x", 100)), true},
	"extensions of chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", bytesOf("1;" + strings.Repeat("x", 1000) + "\r\nx\r\n"), true},
	"the size of a chunk":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", bytesOf(strings.Repeat("0", 100)), true},
}

// answered is what a client gets: a status, and why there is not all of the answer. Where
// the body breaks at once the status may not come either.
func answered(res *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// TestAnswersThatDoNotEndAreCutOff by every way that reads them, before they cost
// anything, and the tool is told.
func TestAnswersThatDoNotEndAreCutOff(t *testing.T) {
	kerneltest.Long(t)
	const enough, most = 64 << 20, 16 << 20 // the kernel's buffers take some of it
	for name, c := range endless {
		for _, from := range []string{"GET http", "POST http", "GET https", "POST https"} {
			t.Run(name+", "+from, func(t *testing.T) {
				w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()[:0:0], Requests: []policy.RequestRule{{Host: "example.com:443"}}}}, quick)
				method, scheme, _ := strings.Cut(from, " ")
				written := make(chan int, 100)
				w.hostile(map[string]uint16{"http": 80, "https": 443}[scheme], func(k net.Conn) {
					if _, err := http.ReadRequest(bufio.NewReader(k)); err == nil {
						io.WriteString(k, c.begin)
						written <- each(k, enough, c.more)
					}
				})
				before := heap()
				client := w.inside()
				client.Timeout = time.Minute
				req, _ := http.NewRequest(method, scheme+"://example.com/", nil)
				if method == "POST" {
					req.Body = io.NopCloser(strings.NewReader("x"))
				}
				if code, err := answered(client.Do(req)); !c.body && code != 502 || c.body && (code == 502 || err == nil) {
					t.Errorf("%d, %v", code, err)
				}
				if n := <-written; n > most {
					t.Errorf("%d bytes of it are taken in", n)
				}
				if n := heap() - before; n > 8<<20 {
					t.Errorf("%d bytes more", n)
				}
			})
		}
	}
}

func quick(http.ResponseWriter, *http.Request) {}
