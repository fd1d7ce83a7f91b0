package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A madeUp clock stands still: how long the last bytes of a transfer have to wait is how
// long all of it takes.
type madeUp struct {
	mu   sync.Mutex
	most time.Duration
}

func (m *madeUp) now() time.Time { return time.Unix(1000, 0) }

func (m *madeUp) wait(_ context.Context, d time.Duration) error {
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

// slow gives a proxy's limit a clock of the test's own.
func slow(g *Proxy) *madeUp {
	m := new(madeUp)
	g.meter.rate.now, g.meter.rate.wait = m.now, m.wait
	return m
}

func TestRateSpreadsBytesOverTime(t *testing.T) {
	p := &rateLimiter{rate: 1000}
	now := time.Unix(1000, 0)
	for i, c := range []struct {
		at   time.Duration
		n    int64
		want time.Duration
	}{{0, 100, 0}, {0, 100, 100 * time.Millisecond}, {0, 800, 900 * time.Millisecond}, {time.Second, 100, 0}, {10 * time.Second, 1100, time.Second}} {
		if d := max(p.reserve(now.Add(c.at), c.n), 0); d != c.want {
			t.Errorf("%d: %v, want %v", i, d, c.want)
		}
	}
	p.reserve(now.Add(20*time.Second), 1000)
	p.refund(900)
	if d := p.reserve(now.Add(20*time.Second), 100); d != 100*time.Millisecond {
		t.Errorf("after what did not pass was given back: %v", d)
	}
}

// TestWhatDidNotPassIsGivenBack: else a connection that sends a little at a time would
// wait as one that sends much.
func TestWhatDidNotPassIsGivenBack(t *testing.T) {
	g, err := New(Config{Network: policy.Network{Limits: policy.NetworkLimits{Rate: 1 << 20, Bytes: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	clock := slow(g)
	p := g.newSpliced(g.ctx, nil, nil)
	p.stop()
	f := &p.up
	for range 100 {
		room, err := g.meter.reserve(p.ctx, burstSize)
		if err != nil || room != 1<<20/10 {
			t.Fatal(room, err)
		}
		f.moved(room, 1000)
	}
	if took := g.meter.rate.free.Sub(clock.now()); took > 110*time.Second*1000/(1<<20) || g.meter.taken.Load() != 100_000 {
		t.Errorf("100000 bytes have taken %v, and %d of the budget", took, g.meter.taken.Load())
	}
}

func TestRateHoldsOnEveryWay(t *testing.T) {
	const rate, n = 100 << 10, 1 << 20
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			w := newWays(t, policy.NetworkLimits{Rate: rate})
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
	kerneltest.Long(t)
	const rate, n = 100 << 20, 256 << 20
	for _, c := range ways {
		if !strings.HasPrefix(c.name, "a tunnel") {
			continue
		}
		w := newWays(t, policy.NetworkLimits{Rate: rate})
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
	w := newWays(t, policy.NetworkLimits{Rate: rate})
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
	w := newWays(t, policy.NetworkLimits{Rate: rate})
	waits := make(chan time.Duration, 10*conns)
	go1 := make(chan struct{})
	w.g.meter.rate.now = func() time.Time { return time.Unix(1000, 0) }
	w.g.meter.rate.wait = func(_ context.Context, d time.Duration) error {
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

// TestWhoWaitsForATurnEnds with the proxy, and with the other direction.
func TestWhoWaitsForATurnEnds(t *testing.T) {
	for _, end := range []string{"the proxy", "the connection"} {
		w := newWays(t, policy.NetworkLimits{Rate: 1000})
		waiting := make(chan struct{}, 100)
		w.g.meter.rate.wait = func(ctx context.Context, d time.Duration) error {
			waiting <- struct{}{}
			return sleep(ctx, time.Hour)
		}
		a, b := net.Pipe()
		p := w.g.newSpliced(w.g.ctx, a, b)
		failed := make(chan error, 1)
		m := newMeteredConn(b, w.g)
		go func() { _, err := m.Write(make([]byte, 2000)); failed <- err }()
		<-waiting
		go func() { failed <- p.up.send(make([]byte, 2000)) }()
		<-waiting
		if end == "the proxy" {
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
