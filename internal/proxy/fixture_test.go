package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A world is a proxy between clients on loopback and servers that it
// believes to be on the Internet: names resolve to public addresses, and Dial
// leads from these to loopback.
type world struct {
	t     testing.TB
	g     *Proxy
	http  string // of the proxies
	socks string

	mu     sync.Mutex
	names  map[string][]netip.Addr
	places map[netip.AddrPort]string
	dialed []netip.AddrPort
	looked []string
	events []policy.Connection
}

// public is where example.com is, as far as the proxy knows.
var public = netip.MustParseAddr("93.184.216.34")

func newWorld(t testing.TB, cfg Config, allow ...string) *world {
	t.Helper()
	w := &world{t: t, names: map[string][]netip.Addr{}, places: map[netip.AddrPort]string{}}
	if len(allow) > 0 {
		cfg.Hosts = allow
	}
	cfg.Lookup, cfg.Dial = w.lookup, w.dial
	if cfg.Observe == nil {
		cfg.Observe = func(e policy.Connection) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		}
	}
	var err error
	if w.g, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.g.Close() })
	w.http, w.socks = w.serve(HTTP), w.serve(SOCKS)
	return w
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (w *world) serve(p Protocol) string {
	l := listen(w.t)
	go w.g.Serve(l, p)
	return l.Addr().String()
}

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, name)
	if a := w.names[name]; a != nil {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, to)
	place := w.places[to]
	w.mu.Unlock()
	if place == "" {
		return nil, errors.New("there is no such place in this world")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", place)
}

// put puts a server that listens at a place into the world, by a name at
// the public address.
func (w *world) put(name string, port uint16, place string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = []netip.Addr{public}
	w.places[netip.AddrPortFrom(public, port)] = place
}

// web puts an HTTP server into the world.
func (w *world) web(name string, port uint16, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	w.put(name, port, s.Listener.Addr().String())
	return s
}

// echo puts a server that sends back what it gets into the world.
func (w *world) echo(name string, port uint16) {
	l := listen(w.t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	w.put(name, port, l.Addr().String())
}

// client is an HTTP client that uses the proxy and trusts a server.
func (w *world) client(trust *httptest.Server) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.http})}
	if trust != nil {
		pool := x509.NewCertPool()
		pool.AddCert(trust.Certificate())
		tr.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// raw sends bytes to the HTTP proxy and returns the connection and a reader of
// the answers.
func (w *world) raw(text string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.http)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// ask sends bytes to the HTTP proxy and returns the status and the body of its
// first answer; 0: there was none.
func (w *world) ask(text string) (int, string) {
	w.t.Helper()
	_, r := w.raw(text)
	return answerOf(r)
}

func answerOf(r *bufio.Reader) (int, string) {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// connect opens a tunnel by CONNECT.
func (w *world) connect(target string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, r := w.raw("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n")
	resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %v %v", target, resp, err)
	}
	return c, r
}

// heard waits for an event whose error has a text: ended would cancel the connection that
// is about to say it.
func (w *world) heard(text string) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		told := slices.ContainsFunc(w.events, func(e policy.Connection) bool { return strings.Contains(e.Err, text) })
		w.mu.Unlock()
		if told {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("no event says %q", text)
		}
	}
}

// ended closes the proxy, so that all has been told, and returns the events. Requests and
// tunnels that are about to end by themselves do so first: Close would cancel them, and their
// events would say that instead.
func (w *world) ended() []policy.Connection {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w.g.server.Shutdown(ctx) // closes the connections that are kept, and waits for requests
	for w.placesHeld() > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	w.g.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// placesHeld is how many clients the proxy counts.
func (w *world) placesHeld() int {
	w.g.tracker.mu.Lock()
	defer w.g.tracker.mu.Unlock()
	return w.g.clients
}

func (w *world) dials() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dialed)
}

func get(t testing.TB, c *http.Client, u string) (int, string) {
	t.Helper()
	resp, err := c.Get(u)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func has(t testing.TB, s string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(s, w) {
			t.Errorf("%q has no %q in it", s, w)
		}
	}
}

func mustHost(t testing.TB, s string) hostrules.Host {
	t.Helper()
	h, err := hostrules.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// remote is a host that has no address of its own.
func remote(netip.Addr) hostrules.Route { return hostrules.RouteRemote }

// routes is a host that has some addresses.
func routes(own ...string) func(netip.Addr) hostrules.Route {
	return func(a netip.Addr) hostrules.Route {
		if slices.Contains(own, a.Unmap().String()) {
			return hostrules.RouteLocal
		}
		return hostrules.RouteRemote
	}
}

// testSecret is the secret of the tests' credentials.
const testSecret = `s3cr3t/+"key<&>=value-of-the-user`

// framedText is a WebSocket's message.
func framedText(text string) string {
	head := []byte{0x81, byte(len(text))}
	switch {
	case len(text) >= 1<<16:
		head = binary.BigEndian.AppendUint64([]byte{0x81, 127}, uint64(len(text)))
	case len(text) > 125:
		head = binary.BigEndian.AppendUint16([]byte{0x81, 126}, uint16(len(text)))
	}
	return string(head) + text
}
