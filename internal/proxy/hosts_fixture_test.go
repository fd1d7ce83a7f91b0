package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// hosts sets the rules of hosts.
func (w *world) hosts(allow ...string) {
	w.t.Helper()
	r, err := hostrules.Compile(allow, w.g.cfg.Deny)
	if err != nil {
		w.t.Fatal(err)
	}
	w.g.SetRules(r)
}

// heldBy are the numbers that servers have been sent.
type heldBy struct {
	most    atomic.Int64
	serving sync.WaitGroup
}

func (h *heldBy) number(s string) {
	n, _ := strconv.ParseInt(strings.TrimFunc(s, func(r rune) bool { return r < '0' || r > '9' }), 10, 64)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
}

func (h *heldBy) lines(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		h.number(s.Text())
	}
}

// ServeHTTP takes a number of the path, and others of the body or the WebSocket.
func (h *heldBy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h.serving.Add(1)
	defer h.serving.Done()
	h.number(r.URL.Path)
	if r.Header.Get("Upgrade") == "" {
		h.lines(r.Body)
		return
	}
	c, b, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	h.lines(b)
}

// narrowed is a world in which example.com records numbers at three ports.
func narrowed(t *testing.T) (*secureWorld, *heldBy) {
	h := new(heldBy)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, h.ServeHTTP)
	w.web("example.com", 80, h.ServeHTTP)
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.serving.Go(func() { defer c.Close(); h.lines(c) })
		}
	}()
	w.put("example.com", 9, l.Addr().String())
	w.echo("api.example.com", 7)
	return w, h
}

// An opener opens a way to example.com. It returns what sends a number there, and the client's connection.
type opener struct {
	name string
	open func(w *secureWorld) (send func(n int64) error, c net.Conn)
}

func openers() []opener {
	bytes := func(open func(w *secureWorld) net.Conn) func(w *secureWorld) (func(int64) error, net.Conn) {
		return func(w *secureWorld) (func(int64) error, net.Conn) {
			c := open(w)
			return func(n int64) error { _, err := fmt.Fprintf(c, "\x00%d\n", n); return err }, c
		}
	}
	requests := func(open func(w *secureWorld) net.Conn, prefix string) func(w *secureWorld) (func(int64) error, net.Conn) {
		return func(w *secureWorld) (func(int64) error, net.Conn) {
			c := open(w)
			in := bufio.NewReader(c)
			return func(n int64) error {
				if _, err := fmt.Fprintf(c, "GET %s/%d HTTP/1.1\r\nHost: example.com\r\n\r\n", prefix, n); err != nil {
					return err
				}
				if status, text := answerOf(in); status != http.StatusOK && status != http.StatusForbidden && status != http.StatusBadGateway {
					return errors.New(text)
				}
				return nil
			}, c
		}
	}
	tls := func(w *secureWorld) net.Conn {
		c, err := w.tls("example.com:443", "example.com")
		if err != nil {
			w.t.Fatal(err)
		}
		return c
	}
	tunnel := func(w *secureWorld) net.Conn { c, _ := w.connect("example.com:80"); return c }
	raw := func(w *secureWorld) net.Conn { c, _ := w.raw(""); return c }
	frames := func(target string) func(w *secureWorld) (func(int64) error, net.Conn) {
		return func(w *secureWorld) (func(int64) error, net.Conn) {
			c, _ := w.socket(target)
			return func(n int64) error { _, err := io.WriteString(c, framedText(fmt.Sprintf("%d\n", n))); return err }, c
		}
	}
	body := func(open func(w *secureWorld) net.Conn, prefix string) func(w *secureWorld) (func(int64) error, net.Conn) {
		return func(w *secureWorld) (func(int64) error, net.Conn) {
			c := open(w)
			fmt.Fprintf(c, "POST %s/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n", prefix)
			return func(n int64) error {
				text := fmt.Sprintf("%d\n", n)
				_, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(text), text)
				return err
			}, c
		}
	}
	pipelined := func(w *secureWorld) (func(int64) error, net.Conn) {
		c := raw(w)
		return func(n int64) error {
			_, err := fmt.Fprintf(c, "GET http://example.com/%d HTTP/1.1\r\nHost: example.com\r\n\r\n", n)
			return err
		}, c
	}
	return []opener{
		{"a tunnel", bytes(func(w *secureWorld) net.Conn { c, _ := w.connect("example.com:9"); return c })},
		{"SOCKS", bytes(func(w *secureWorld) net.Conn { c, _ := w.dialSOCKS(named("example.com", 9)); return c })},
		{"what a capture has taken", bytes(func(w *secureWorld) net.Conn { return w.captured(9) })},
		{"requests of a kept connection", requests(raw, "http://example.com")},
		{"requests in a tunnel", requests(tunnel, "")},
		{"requests in terminated TLS", requests(tls, "")},
		{"pipelined requests", pipelined},
		{"a WebSocket", frames("example.com:80")},
		{"a WebSocket in terminated TLS", frames("example.com:443")},
		{"a request's body", body(raw, "http://example.com")},
		{"a body in a tunnel", body(tunnel, "")},
		{"a body in terminated TLS", body(tls, "")},
	}
}
