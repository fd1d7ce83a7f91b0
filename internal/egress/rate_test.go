package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A madeUp clock stands still: how long the last bytes of a transfer have to wait is how
// long all of it takes.
type madeUp struct {
	mu   sync.Mutex
	most time.Duration
}

func (m *madeUp) now() time.Time { return time.Unix(1000, 0) }

func (m *madeUp) wait(_ context.Context, _ <-chan struct{}, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = max(m.most, d)
	return nil
}

// took is how long everything has taken so far.
func (m *madeUp) took() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// slow gives a gateway's limit a clock of the test's own.
func slow(g *Gateway) *madeUp {
	m := new(madeUp)
	g.meter.pace.now, g.meter.pace.wait = m.now, m.wait
	return m
}

func TestRateSpreadsBytesOverTime(t *testing.T) {
	p := &pace{rate: 1000}
	now := time.Unix(1000, 0)
	for i, c := range []struct {
		at   time.Duration
		n    int64
		want time.Duration
	}{{0, 100, 0}, {0, 100, 100 * time.Millisecond}, {0, 800, 900 * time.Millisecond}, {time.Second, 100, 0}, {10 * time.Second, 1100, time.Second}} {
		if d := max(p.after(now.Add(c.at), c.n), 0); d != c.want {
			t.Errorf("%d: %v, want %v", i, d, c.want)
		}
	}
	p.after(now.Add(20*time.Second), 1000)
	p.back(900)
	if d := p.after(now.Add(20*time.Second), 100); d != 100*time.Millisecond {
		t.Errorf("after what did not pass was given back: %v", d)
	}
}

// TestWhatDidNotPassIsGivenBack: else a connection that sends a little at a time would
// wait as one that sends much.
func TestWhatDidNotPassIsGivenBack(t *testing.T) {
	g, err := New(Config{Limits: Limits{Rate: 1 << 20, Bytes: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	clock := slow(g)
	p := g.newPair(g.ctx, nil, nil)
	p.stop()
	f := &p.up
	for range 100 {
		room, err := f.room(burstSize)
		if err != nil || room != 1<<20/10 {
			t.Fatal(room, err)
		}
		f.moved(room, 1000)
	}
	if took := g.meter.pace.free.Sub(clock.now()); took > 110*time.Second*1000/(1<<20) || g.meter.taken.Load() != 100_000 {
		t.Errorf("100000 bytes have taken %v, and %d of the budget", took, g.meter.taken.Load())
	}
}

// A way is one by which bytes leave or enter a sandbox. It moves n bytes and returns
// when they have arrived.
type way struct {
	name string
	move func(w *secureWorld, n int64) error
}

// ways are all of them, each direction by itself.
var ways = []way{
	{"a plain request's answer", func(w *secureWorld, n int64) error { return w.fetch("http://example.com/", false, n) }},
	{"a plain request's body", func(w *secureWorld, n int64) error { return w.send("http://example.com/", false, n) }},
	{"the answer in terminated TLS", func(w *secureWorld, n int64) error { return w.fetch("https://example.com/", false, n) }},
	{"the body in terminated TLS", func(w *secureWorld, n int64) error { return w.send("https://example.com/", false, n) }},
	{"the answer in terminated TLS by HTTP/2", func(w *secureWorld, n int64) error { return w.fetch("https://example.com/", true, n) }},
	{"the body in terminated TLS by HTTP/2", func(w *secureWorld, n int64) error { return w.send("https://example.com/", true, n) }},
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
func newWays(t *testing.T, l Limits) *secureWorld {
	t.Helper()
	h := func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, b, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			obey(c, b.Reader)
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
	w := newSecureWorld(t, Config{Credentials: bearer(), Limits: l}, h)
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
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if got, err := io.Copy(io.Discard, res.Body); got != n || err != nil {
		return fmt.Errorf("%d of %d bytes: %w", got, n, err)
	}
	return nil
}

func (w *secureWorld) fetch(u string, two bool, n int64) error {
	c := w.inside(two)
	defer c.CloseIdleConnections()
	res, err := c.Get(fmt.Sprintf("%s%d", u, n))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if got, err := io.Copy(io.Discard, res.Body); got != n || err != nil {
		return fmt.Errorf("%d of %d bytes: %w", got, n, err)
	}
	return nil
}

func (w *secureWorld) send(u string, two bool, n int64) error {
	c := w.inside(two)
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
	go w.g.Tunnel(w.t.Context(), gate, Target{Host: mustHost(w.t, "example.com"), Port: port, Protocol: "tcp"})
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

func TestRateHoldsOnEveryWay(t *testing.T) {
	const rate, n = 100 << 10, 1 << 20
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			w := newWays(t, Limits{Rate: rate})
			clock := slow(w.g)
			if err := c.move(w, n); err != nil {
				t.Fatal(err)
			}
			checkTime(t, clock, n, rate, 64<<10) // heads, handshakes, frames
		})
	}
}

// TestRateHoldsWhereTheKernelMovesTheBytes: at this rate pieces are large enough for
// splice, and what was not moved of one is given back.
func TestRateHoldsWhereTheKernelMovesTheBytes(t *testing.T) {
	const rate, n = 100 << 20, 256 << 20
	for _, c := range ways {
		if !strings.HasPrefix(c.name, "a tunnel") {
			continue
		}
		w := newWays(t, Limits{Rate: rate})
		clock := slow(w.g)
		if err := c.move(w, n); err != nil {
			t.Fatal(c.name, err)
		}
		// A piece has its turn before it is known how much of it there is.
		checkTime(t, clock, n, rate, n)
	}
}

// checkTime holds the time that n bytes have taken against the rate.
func checkTime(t *testing.T, clock *madeUp, n, rate, more int64) {
	t.Helper()
	least := time.Duration(n)*time.Second/time.Duration(rate) - time.Second/5
	most := time.Duration(n+more) * time.Second / time.Duration(rate)
	if d := clock.took(); d < least || d > most {
		t.Errorf("%d bytes at %d bytes a second have taken %v, and not %v to %v", n, rate, d, least, most)
	}
}

func TestConnectionsHaveOneRateTogether(t *testing.T) {
	const rate, n = 100 << 10, 128 << 10
	w := newWays(t, Limits{Rate: rate})
	clock := slow(w.g)
	var all sync.WaitGroup
	for _, c := range ways {
		all.Go(func() {
			if err := c.move(w, n); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	all.Wait()
	sum := int64(len(ways)) * n
	checkTime(t, clock, sum, rate, sum/2)
}

// TestNewConnectionsAreNoWayAroundTheRate: each of them would otherwise have a piece of
// its own before it waits.
func TestNewConnectionsAreNoWayAroundTheRate(t *testing.T) {
	const rate, n, conns = 100 << 10, 10 << 10, 20
	w := newWays(t, Limits{Rate: rate})
	waits := make(chan time.Duration, 10*conns)
	go1 := make(chan struct{})
	w.g.meter.pace.now = func() time.Time { return time.Unix(1000, 0) }
	w.g.meter.pace.wait = func(_ context.Context, _ <-chan struct{}, d time.Duration) error {
		waits <- d
		<-go1
		return nil
	}
	var got sync.WaitGroup
	for range conns {
		c, r := w.connect("example.com:9")
		fmt.Fprintf(c, "\x00%s", strings.Repeat("x", n)) // what it is stays unread: no line
		got.Go(func() { r.ReadByte() })
	}
	for range conns - 2 { // one has a tenth of a second's worth at once
		<-waits
	}
	if sent := w.g.Summary().Sent; sent > 2*n {
		t.Errorf("%d bytes have passed before their turn", sent)
	}
	close(go1)
	w.g.Close()
	got.Wait()
}

// TestWhoWaitsForATurnEnds with the gateway, and with the other direction.
func TestWhoWaitsForATurnEnds(t *testing.T) {
	for _, end := range []string{"the gateway", "the connection"} {
		w := newWays(t, Limits{Rate: 1000})
		waiting := make(chan struct{}, 100)
		w.g.meter.pace.wait = func(ctx context.Context, over <-chan struct{}, d time.Duration) error {
			waiting <- struct{}{}
			return sleep(ctx, over, time.Hour)
		}
		a, b := net.Pipe()
		p := w.g.newPair(w.g.ctx, a, b)
		failed := make(chan error, 1)
		m := newMetered(b, w.g)
		go func() { _, err := m.Write(make([]byte, 2000)); failed <- err }()
		<-waiting
		go func() { failed <- p.up.write(make([]byte, 2000)) }()
		<-waiting
		if end == "the gateway" {
			go w.g.Close()
		} else {
			p.cut()
			m.Close()
		}
		for range 2 {
			if err := <-failed; !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", end, err)
			}
		}
	}
}
