package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestASilentFlowEnds(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	f.g.udpTimeout = func(uint16) time.Duration { return 20 * time.Millisecond }
	f.serve("93.184.216.34:123")
	m, over := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := m.Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the client's end is open: %v", err)
	}
	if e := f.ended(); len(e) != 1 || !e[0].Allowed || e[0].Err != "" {
		t.Errorf("%+v", e)
	}
	if udpTimeout(53) >= udpTimeout(123) {
		t.Error("a question's flow is kept as long as others")
	}
}

func TestFlowsCountAsConnections(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, func(c *Config) { c.Limits.Connections = 2 })
	server := f.serve("93.184.216.34:123")
	var open []*mouth
	var ends []<-chan error
	for range 2 {
		m, over := f.flow("93.184.216.34", 123)
		m.say(t, "hello")
		hear(t, server)
		open, ends = append(open, m), append(ends, over)
	}
	_, over := f.flow("93.184.216.34", 123)
	if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "limit on connections") {
		t.Error(r)
	}
	open[0].Close()
	<-ends[0]
	m, _ := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	hear(t, server)
}

func TestBytesOfDatagramsAreLimited(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, func(c *Config) { c.Limits.Bytes = 1000 })
	server := f.serve("93.184.216.34:123")
	m, over := f.flow("93.184.216.34", 123)
	m.say(t, strings.Repeat("x", 600))
	_, from := hear(t, server)
	server.WriteToUDPAddrPort(bytes.Repeat([]byte("y"), 401), from)
	if err := <-over; !errors.Is(err, errBytes) {
		t.Error(err)
	}
	_, over = f.flow("93.184.216.34", 123)
	if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "limit on bytes") {
		t.Error(r)
	}
	m.end.SetReadDeadline(time.Now())
	if _, err := m.end.Read(make([]byte, 1000)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("more than the limit has come: %v", err)
	}
}

func TestTheRateHoldsForDatagrams(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, func(c *Config) { c.Limits.Rate = 100_000 })
	server := f.serve("93.184.216.34:123")
	m, _ := f.flow("93.184.216.34", 123)
	began := time.Now()
	for range 8 {
		m.say(t, strings.Repeat("x", 5000))
		hear(t, server)
	}
	// 35,000 of them have been waited for, and a tenth of a second's are free.
	if d := time.Since(began); d < 250*time.Millisecond {
		t.Errorf("40,000 bytes took %v", d)
	}
}

func TestNamesBelowAWildcardAreCountedForDatagramsToo(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"*.example.com:123"}}, func(c *Config) { c.Limits.Names = 2 })
	for i, name := range []string{"a", "b", "a", "c"} {
		_, over := f.flow(name+".example.com", 123)
		r := refusalOf(<-over)
		if (r != nil && strings.Contains(r.Why, "names were asked for")) != (i == 3) {
			t.Errorf("%s: %v", name, r)
		}
	}
	if len(f.looked) != 3 {
		t.Errorf("looked up %q", f.looked)
	}
}

func TestABroadcastAddressIsNotSentTo(t *testing.T) {
	c, err := dialUDP(t.Context(), netip.MustParseAddrPort("127.255.255.255:9"))
	if err == nil {
		c.Close()
		t.Error("connected")
	}
	if c, err = dialUDP(t.Context(), netip.MustParseAddrPort("127.0.0.1:9")); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestFlowsEndWithTheGatewayAndLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:1-65535"}}, nil)
	server := f.serve("93.184.216.34:123")
	var ends []<-chan error
	var mouths []*mouth
	for range 20 {
		m, over := f.flow("93.184.216.34", 123)
		m.say(t, "hello")
		hear(t, server)
		ends, mouths = append(ends, over), append(mouths, m)
	}
	f.g.Close()
	for i, over := range ends {
		if err := <-over; err != nil {
			t.Error(err)
		}
		if _, err := mouths[i].Write([]byte("late")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a client's end is open: %v", err)
		}
	}
	if len(f.g.open) > 0 || f.g.clients > 0 {
		t.Errorf("%d are open, %d clients", len(f.g.open), f.g.clients)
	}
	if h := mustHost(t, "93.184.216.34"); f.g.CarryUDP(t.Context(), newMouth(t), Target{Host: h, Port: 123}) == nil {
		t.Error("a flow after the end")
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestAFlowEndsWithItsContext(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server := f.serve("93.184.216.34:123")
	ctx, cancel := context.WithCancel(t.Context())
	m, over := newMouth(t), make(chan error, 1)
	go func() {
		over <- f.g.CarryUDP(ctx, m, Target{Host: mustHost(t, "93.184.216.34"), Port: 123, Protocol: "udp"})
	}()
	m.say(t, "hello")
	hear(t, server)
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestAFlowThatIsSilentHoldsNoBuffer: of a client that writes its datagrams itself
// there is nothing but two goroutines.
func TestAFlowThatIsSilentHoldsNoBuffer(t *testing.T) {
	const flows = 300
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server := f.serve("93.184.216.34:123")
	before := heap()
	for range flows {
		w := &writer{Conn: socket(t), over: make(chan struct{})}
		go f.g.CarryUDP(t.Context(), w, Target{Host: mustHost(t, "93.184.216.34"), Port: 123, Protocol: "udp"})
		hear(t, server)
	}
	if each := (heap() - before) / flows; each > 24<<10 {
		t.Errorf("%d bytes each", each)
	}
}

type writer struct {
	net.Conn
	over chan struct{}
	once sync.Once
}

func (w *writer) WriteTo(to io.Writer) (int64, error) {
	to.Write([]byte("hello"))
	<-w.over
	return 0, net.ErrClosed
}

func (w *writer) Close() error {
	w.once.Do(func() { close(w.over) })
	return w.Conn.Close()
}
