package egress

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

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hostile puts a server at a port of example.com that does what it likes with each
// connection: at 443 in TLS, of HTTP/2 if two.
func (w *secureWorld) hostile(port uint16, two bool, serve func(c net.Conn)) {
	w.t.Helper()
	l := listen(w.t)
	if port == 443 {
		l = tls.NewListener(l, &tls.Config{Certificates: w.server.TLS.Certificates, NextProtos: []string{map[bool]string{true: "h2", false: "http/1.1"}[two]}})
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	w.put("example.com", port, l.Addr().String())
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
	const enough, most = 64 << 20, 16 << 20 // the kernel's buffers take some of it
	for name, c := range endless {
		for _, from := range []string{"GET http", "POST http", "GET https", "POST https", "GET https by HTTP/2"} {
			t.Run(name+", "+from, func(t *testing.T) {
				w := newSecureWorld(t, Config{Credentials: bearer()[:0:0], Requests: []RequestRule{{Host: "example.com:443"}}}, quick)
				method, rest, _ := strings.Cut(from, " ")
				scheme, two, _ := strings.Cut(rest, " ")
				written := make(chan int, 100)
				w.hostile(map[string]uint16{"http": 80, "https": 443}[scheme], false, func(k net.Conn) {
					if _, err := http.ReadRequest(bufio.NewReader(k)); err == nil {
						io.WriteString(k, c.begin)
						written <- each(k, enough, c.more)
					}
				})
				before := heap()
				client := w.inside(two != "")
				client.Timeout = 30 * time.Second
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

// TestServersOfHTTP2AreCutOff: they may send any frame as often as they like.
func TestServersOfHTTP2AreCutOff(t *testing.T) {
	const enough = 256 << 20
	headers := func(c io.Writer, stream uint32, flags http2.Flags, fields ...string) {
		var b strings.Builder
		e := hpack.NewEncoder(&b)
		for _, f := range fields {
			name, value, _ := strings.Cut(f, "=")
			e.WriteField(hpack.HeaderField{Name: name, Value: value})
		}
		c.Write(wireFrame(http2.FrameHeaders, flags, stream, []byte(b.String())...))
	}
	field := func(i int) string { // a literal without indexing
		return fmt.Sprintf("\x00\x07x%06d\x7f\x49%s", i%1_000_000, strings.Repeat("v", 200))
	}
	for name, c := range map[string]struct {
		begin func(c io.Writer, stream uint32)
		more  func(stream uint32, i int) string
		code  int
	}{
		"hints": {nil, func(s uint32, _ int) string {
			return string(wireFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, s, append([]byte{0x08, 3}, "103"...)...))
		}, 502},
		"a head's frames": {func(c io.Writer, s uint32) { headers(c, s, 0, ":status=200") }, func(s uint32, i int) string {
			return string(wireFrame(http2.FrameContinuation, 0, s, []byte(strings.Repeat(field(i), 50))...))
		}, 502},
		"a trailer's frames": {func(c io.Writer, s uint32) {
			headers(c, s, http2.FlagHeadersEndHeaders, ":status=200")
			headers(c, s, http2.FlagHeadersEndStream, "a=b")
		}, func(s uint32, i int) string {
			return string(wireFrame(http2.FrameContinuation, 0, s, []byte(strings.Repeat(field(i), 50))...))
		}, 200},
		"a large frame": {nil, func(s uint32, _ int) string {
			return "\xff\xff\xff\x00\x00\x00\x00\x00\x01" + strings.Repeat("x", 1000)
		}, 502},
		"streams that are not wanted": {nil, func(_ uint32, i int) string {
			return string(wireFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, 0, 0, 0, byte(2+i%100)))
		}, 502},
		"windows": {nil, func(uint32, int) string {
			return string(wireFrame(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0xff, 0xff))
		}, 502},
		"resets": {nil, func(s uint32, _ int) string { return string(wireFrame(http2.FrameRSTStream, 0, s, 0, 0, 0, 2)) }, 502},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSecureWorld(t, Config{Requests: []RequestRule{{Host: "example.com:443"}}}, quick)
			written := make(chan int, 1000)
			w.hostile(443, true, func(k net.Conn) {
				io.ReadFull(k, make([]byte, len(preface)))
				f := http2.NewFramer(k, k)
				f.WriteSettings()
				for {
					got, err := f.ReadFrame()
					if err != nil {
						return
					}
					h, ok := got.(*http2.HeadersFrame)
					if !ok {
						continue
					}
					go io.Copy(io.Discard, k)
					if c.begin != nil {
						c.begin(k, h.StreamID)
					}
					written <- each(k, enough, func(i int) string { return c.more(h.StreamID, i) })
					return
				}
			})
			before := heap()
			client := w.inside(false)
			client.Timeout = 30 * time.Second
			if code, err := answered(client.Get("https://example.com/")); code != c.code && (c.code == 502 || err == nil) {
				t.Errorf("%d, %v", code, err)
			}
			client.CloseIdleConnections()
			if n := <-written; n >= enough {
				t.Errorf("%d bytes of it are taken in", n)
			}
			if n := heap() - before; n > 8<<20 {
				t.Errorf("%d bytes more", n)
			}
			if n := w.dials(); n > 10 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}
