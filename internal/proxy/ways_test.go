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

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A way is one by which bytes leave or enter a sandbox. It moves n bytes and returns
// when they have arrived.
type way struct {
	name string
	move func(w *secureWorld, n int64) error
}

// ways are all of them, each direction by itself.
var ways = []way{
	{"a plain request's answer", func(w *secureWorld, n int64) error { return w.fetch("http://example.com/", n) }},
	{"a plain request's body", func(w *secureWorld, n int64) error { return w.send("http://example.com/", n) }},
	{"the answer in terminated TLS", func(w *secureWorld, n int64) error { return w.fetch("https://example.com/", n) }},
	{"the body in terminated TLS", func(w *secureWorld, n int64) error { return w.send("https://example.com/", n) }},
	{"a tunnel in", func(w *secureWorld, n int64) error { c, r := w.connect("example.com:9"); return w.pull(c, r, n) }},
	{"a tunnel out", func(w *secureWorld, n int64) error { c, r := w.connect("example.com:9"); return w.push(c, r, n) }},
	{"SOCKS in", func(w *secureWorld, n int64) error {
		c, _ := w.dialSOCKS(named("example.com", 9))
		return w.pull(c, c, n)
	}},
	{"SOCKS out", func(w *secureWorld, n int64) error {
		c, _ := w.dialSOCKS(named("example.com", 9))
		return w.push(c, c, n)
	}},
	{"plain HTTP in a tunnel", func(w *secureWorld, n int64) error {
		c, r := w.connect("example.com:80")
		fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n", n)
		return arrived(r, n)
	}},
	{"what a capture has taken, in", func(w *secureWorld, n int64) error { c := w.captured(9); return w.pull(c, c, n) }},
	{"what a capture has taken, out", func(w *secureWorld, n int64) error { c := w.captured(9); return w.push(c, c, n) }},
	{"a granted port in", func(w *secureWorld, n int64) error { c := w.granted(); return w.pull(c, c, n) }},
	{"a granted port out", func(w *secureWorld, n int64) error { c := w.granted(); return w.push(c, c, n) }},
	{"a WebSocket in", func(w *secureWorld, n int64) error { c, r := w.socket("example.com:80"); return w.pull(c, r, n) }},
	{"a WebSocket out", func(w *secureWorld, n int64) error { c, r := w.socket("example.com:80"); return w.push(c, r, n) }},
	{"a WebSocket in terminated TLS in", func(w *secureWorld, n int64) error { c, r := w.socket("example.com:443"); return w.pull(c, r, n) }},
	{"a WebSocket in terminated TLS out", func(w *secureWorld, n int64) error { c, r := w.socket("example.com:443"); return w.push(c, r, n) }},
}

// newWays is a world in which there are servers for all of them.
func newWays(t *testing.T, l policy.NetworkLimits) *secureWorld {
	t.Helper()
	h := func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, b, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			obey(pushing{c}, b.Reader)
			return
		}
		var n int64
		if fmt.Sscanf(r.URL.Path, "/%d", &n); n > 0 {
			io.CopyN(rw, zeros{}, n)
			return
		}
		n, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(rw, n)
	}
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Limits: l}}, h)
	w.web("example.com", 80, h)
	server := listen(t)
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); obey(c, bufio.NewReader(c)) }()
		}
	}()
	w.put("example.com", 9, server.Addr().String())
	return w
}

// A pushing writer says something after each short answer: the end of what a server says by
// a WebSocket, where it ends no frame, may be the beginning of a secret's echo, and waits.
type pushing struct{ io.Writer }

func (p pushing) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if err == nil && len(b) < 100 {
		_, err = p.Writer.Write(make([]byte, 2<<10))
	}
	return n, err
}

// obey is a server that is told "+n": send n bytes, or "-n": take n bytes, and say so.
func obey(c io.Writer, r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		var n int64
		if fmt.Sscanf(line, "%d", &n); err != nil || n == 0 {
			return
		}
		if n > 0 {
			io.CopyN(c, zeros{}, n)
			continue
		}
		n, _ = io.CopyN(io.Discard, r, -n)
		fmt.Fprintln(c, n)
	}
}

func (w *secureWorld) pull(c io.WriteCloser, r io.Reader, n int64) error {
	defer c.Close()
	fmt.Fprintf(c, "+%d\n", n)
	got, err := io.CopyN(io.Discard, r, n)
	if got == n {
		return nil
	}
	return fmt.Errorf("%d of %d bytes: %w", got, n, err)
}

func (w *secureWorld) push(c io.WriteCloser, r io.Reader, n int64) error {
	defer c.Close()
	fmt.Fprintf(c, "-%d\n", n)
	go io.CopyN(c, zeros{}, n)
	var got int64
	if _, err := fmt.Fscanln(r, &got); err != nil || got != n {
		return fmt.Errorf("%d of %d bytes: %w", got, n, err)
	}
	return nil
}

func arrived(r *bufio.Reader, n int64) error {
	res, err := http.ReadResponse(r, nil)
	return whole(res, err, n)
}

// whole reads a response of n bytes.
func whole(res *http.Response, err error, n int64) error {
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if got, err := io.Copy(io.Discard, res.Body); got != n || err != nil {
		return fmt.Errorf("%d of %d bytes: %w", got, n, err)
	}
	return nil
}

func (w *secureWorld) fetch(u string, n int64) error {
	c := w.inside()
	defer c.CloseIdleConnections()
	res, err := c.Get(fmt.Sprintf("%s%d", u, n))
	return whole(res, err, n)
}

func (w *secureWorld) send(u string, n int64) error {
	c := w.inside()
	defer c.CloseIdleConnections()
	res, err := c.Post(u, "text/plain", io.LimitReader(zeros{}, n))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); string(b) != fmt.Sprint(n) {
		return fmt.Errorf("%d bytes, the server says %q: %w", n, b, err)
	}
	return nil
}

// captured is a tool's connection as a capture hands it over.
func (w *secureWorld) captured(port uint16) net.Conn {
	tool, gate := net.Pipe()
	go w.g.CarryTCP(w.t.Context(), gate, Target{Host: mustHost(w.t, "example.com"), Port: port, Protocol: "tcp"})
	return tool
}

// granted is a connection to a port of Loopback.
func (w *secureWorld) granted() net.Conn {
	l := listen(w.t)
	w.mu.Lock()
	place := w.places[addrPort(public.String()+":9")]
	w.places[addrPort(place)] = place
	w.mu.Unlock()
	go w.g.Forward(l, place)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// socket is a WebSocket whose handshake is over.
func (w *secureWorld) socket(target string) (net.Conn, *bufio.Reader) {
	conn, r := w.connect(target)
	if strings.HasSuffix(target, ":443") {
		conn = tls.Client(conn, &tls.Config{ServerName: "example.com", RootCAs: w.trust, NextProtos: []string{"http/1.1"}})
		r = bufio.NewReader(conn)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
		w.t.Fatal(res, err)
	}
	return conn, r
}
