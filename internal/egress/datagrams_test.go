package egress

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

// A meadow is a gateway for datagrams in a made-up Internet, whose servers are on
// loopback.
type meadow struct {
	t *testing.T
	g *Gateway

	mu     sync.Mutex
	names  map[string][]netip.Addr
	places map[netip.AddrPort]string
	looked []string
	sent   []netip.AddrPort // sockets that were connected
	asked  int
	events []Event
}

type grants struct{ udp, hosts, deny, guarded []string }

func newMeadow(t *testing.T, of grants, change func(c *Config)) *meadow {
	t.Helper()
	f := &meadow{t: t, names: map[string][]netip.Addr{}, places: map[netip.AddrPort]string{}}
	c := Config{Lookup: f.lookup, DialUDP: f.connect, Own: func(a netip.Addr) bool { return a == netip.MustParseAddr("198.41.0.4") }}
	var err error
	if c.Rules, err = Compile(of.hosts, of.deny); err != nil {
		t.Fatal(err)
	}
	if c.Datagrams, err = CompileDatagrams(of.udp, of.deny, of.guarded); err != nil {
		t.Fatal(err)
	}
	c.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.New("nothing is connected here") }
	c.Observe = func(e Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, e)
	}
	c.Decide = func(context.Context, Request) Verdict {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked++
		return Verdict{Allow: true}
	}
	if change != nil {
		change(&c)
	}
	if f.g, err = New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.g.Close() })
	return f
}

func (f *meadow) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = append(f.looked, name)
	if a := f.names[name]; a != nil {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (f *meadow) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	f.mu.Lock()
	f.sent = append(f.sent, to)
	place := f.places[to]
	f.mu.Unlock()
	if place == "" {
		return nil, errors.New("there is no such place")
	}
	return dialUDP(ctx, netip.MustParseAddrPort(place))
}

// put has a name resolve to addresses.
func (f *meadow) put(name string, addrs ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = nil
	for _, a := range addrs {
		f.names[name] = append(f.names[name], netip.MustParseAddr(a))
	}
}

// serve puts a socket on loopback at an address of the meadow's Internet.
func (f *meadow) serve(at string) *net.UDPConn {
	c := socket(f.t)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places[netip.MustParseAddrPort(at)] = c.LocalAddr().String()
	return c
}

// ended closes the gateway and returns the events.
func (f *meadow) ended() []Event {
	f.g.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

func socket(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// A mouth is a client: what Write sends it can be heard, and say speaks.
type mouth struct {
	*net.UDPConn // what the gateway has of it
	end          *net.UDPConn
	told         chan struct{} // of a port at which nobody is
}

func (m *mouth) Unreachable() {
	select {
	case m.told <- struct{}{}:
	default:
	}
}

func newMouth(t *testing.T) *mouth {
	t.Helper()
	a, b := socket(t), socket(t)
	m := &mouth{told: make(chan struct{}, 1)}
	join := func(from, to *net.UDPConn) *net.UDPConn {
		local := from.LocalAddr().(*net.UDPAddr)
		from.Close()
		c, err := net.DialUDP("udp4", local, to.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	m.UDPConn = join(a, b)
	m.end = join(b, m.UDPConn)
	m.end.SetDeadline(time.Now().Add(time.Minute))
	return m
}

func (m *mouth) say(t *testing.T, b string) {
	t.Helper()
	if _, err := m.end.Write([]byte(b)); err != nil {
		t.Fatal(err)
	}
}

func (m *mouth) hear(t *testing.T) string {
	t.Helper()
	b := make([]byte, 1<<16)
	n, err := m.end.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// hear returns a datagram and who sent it.
func hear(t *testing.T, c *net.UDPConn) (string, netip.AddrPort) {
	t.Helper()
	b := make([]byte, 1<<16)
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n]), from
}

// flow begins one and returns its client, and what tells of its end.
func (f *meadow) flow(host string, port uint16) (*mouth, <-chan error) {
	f.t.Helper()
	h, err := ParseHost(host)
	if err != nil {
		f.t.Fatal(err)
	}
	m, over := newMouth(f.t), make(chan error, 1)
	go func() { over <- f.g.Datagrams(f.t.Context(), m, Target{Host: h, Port: port, Protocol: "udp"}) }()
	return m, over
}

func TestDatagramsPassBothWaysAndAreOneEvent(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"*.example.com:123"}}, nil)
	f.put("time.example.com", "93.184.216.34")
	server := f.serve("93.184.216.34:123")
	m, over := f.flow("time.example.com", 123)
	large := strings.Repeat("x", 60000)
	for _, text := range []string{"hello", "", large} {
		m.say(t, text)
		got, from := hear(t, server)
		if got != text {
			t.Fatalf("%d bytes arrived of %d", len(got), len(text))
		}
		server.WriteToUDPAddrPort([]byte("re:"+text), from)
		if got := m.hear(t); got != "re:"+text {
			t.Fatalf("%d bytes came back of %d", len(got), len(text))
		}
		server.WriteToUDPAddrPort(nil, from)
		if got := m.hear(t); got != "" {
			t.Fatalf("%d bytes came back of none", len(got))
		}
	}
	m.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	events := f.ended()
	if len(events) != 1 {
		t.Fatalf("%+v", events)
	}
	e := events[0]
	if e.Protocol != "udp" || e.Host != "time.example.com" || e.Port != 123 || e.Address != "93.184.216.34:123" || !e.Allowed || e.Rule != "*.example.com:123" || e.Err != "" ||
		e.Sent != 60005 || e.Received != 60014 || e.Duration <= 0 || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	if s := f.g.Summary(); s.Sent != 60005 || s.Received != 60014 || s.Allowed != 1 {
		t.Errorf("%+v", s)
	}
	if f.asked != 0 {
		t.Error("Decide was asked")
	}
}

func TestDatagramsThatNoEntryGrantsGoNowhere(t *testing.T) {
	f := newMeadow(t, grants{
		udp:     []string{"time.example.com:123", "*.games.example:27000-27100", "half.example:1-1000", "10.0.0.0/8:123", "api.vault.example:8443", "*.vault.example:443", "sibling.example:443", "93.184.216.99:443", "0.0.0.0/0:9"},
		hosts:   []string{"tcp.example", "time.example.com"},
		deny:    []string{"bad.games.example", "half.example:500"},
		guarded: []string{"api.vault.example:443", "*.judged.example:443", "192.0.2.0/24:443"},
	}, nil)
	f.put("api.vault.example", "93.184.216.34", "93.184.216.99")
	f.put("other.vault.example", "93.184.216.77")
	f.put("sibling.example", "93.184.216.34")
	f.put("a.games.example", "192.168.1.1")
	f.put("b.games.example", "169.254.169.254")
	f.put("c.games.example", "198.41.0.4")
	f.put("d.games.example", "224.0.0.251")
	f.put("e.games.example", "10.1.2.3")
	f.put("f.games.example", "::1", "127.0.0.1", "::ffff:10.9.9.9")
	for _, tt := range []struct {
		says, host string
		port       uint16
		why        string
		looked     bool
	}{
		{"a host that connections may be made to", "tcp.example", 123, "no entry for datagrams", false},
		{"another port", "time.example.com", 443, "no entry for datagrams", false},
		{"port 0", "time.example.com", 0, "no port 0", false},
		{"a host that is denied", "bad.games.example", 27000, "deny-list", false},
		{"a port that is denied", "half.example", 500, "deny-list", false},
		{"an address that nothing names", "192.168.1.1", 123, "is private", false},
		{"the metadata service", "169.254.169.254", 9, "metadata", false},
		{"a guarded host", "api.vault.example", 443, "the policy judges", false},
		{"a name with a private address", "a.games.example", 27000, "is private", true},
		{"a name with the metadata service's address", "b.games.example", 27000, "metadata", true},
		{"a name with the host's own address", "c.games.example", 27000, "of the host itself", true},
		{"a name with a group's address", "d.games.example", 27000, "not one host's", true},
		{"a name with an address that is granted at another port", "e.games.example", 27000, "is private", true},
		{"a name with every form of a private address", "f.games.example", 27000, "only an entry", true},
		{"a group", "224.0.0.251", 9, "multicast", false},
		{"a name with a guarded host's address", "sibling.example", 443, "is an address of api.vault.example", true},
		{"an address of a guarded host", "93.184.216.99", 443, "is an address of api.vault.example", false},
	} {
		f.mu.Lock()
		f.looked = nil
		f.mu.Unlock()
		_, over := f.flow(tt.host, tt.port)
		err := <-over
		if r := refusalOf(err); r == nil || !strings.Contains(r.Why, tt.why) {
			t.Errorf("%s: %v", tt.says, err)
		}
		f.mu.Lock()
		if looked := len(f.looked) > 0; looked != tt.looked {
			t.Errorf("%s: looked up %q", tt.says, f.looked)
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	if len(f.sent) > 0 || f.asked > 0 {
		t.Errorf("sockets for %v; Decide was asked %d times", f.sent, f.asked)
	}
	f.mu.Unlock()
	for _, e := range f.ended() {
		if e.Allowed || e.Reason == "" || e.Sent+e.Received > 0 || e.Protocol != "udp" {
			t.Errorf("%+v", e)
		}
	}
}

func TestAGuardedHostStaysKnownByTheAddressesThatItHasHad(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:443", "93.184.216.35:443", "93.184.216.36:443"}, hosts: []string{"*.judged.example"}, guarded: []string{"*.judged.example:443", "one.example:443"}}, nil)
	refusedFor := func(addr, name string) {
		t.Helper()
		_, over := f.flow(addr, 443)
		if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "is an address of "+name) {
			t.Errorf("%s: %v", addr, r)
		}
	}
	f.put("a.judged.example", "93.184.216.34")
	if _, err := f.g.Open(t.Context(), Target{Host: mustHost(t, "a.judged.example"), Port: 1, Protocol: "tcp"}); err == nil {
		t.Fatal("connected to nothing")
	}
	f.put("a.judged.example", "93.184.216.1")
	refusedFor("93.184.216.34", "a.judged.example")
	f.put("one.example", "93.184.216.35")
	f.g.sightings.looked = nil // a minute later
	refusedFor("93.184.216.35", "one.example")
	f.put("one.example", "93.184.216.2")
	f.g.sightings.looked = nil
	refusedFor("93.184.216.35", "one.example")
	server := f.serve("93.184.216.36:443")
	m, over := f.flow("93.184.216.36", 443)
	m.say(t, "hello")
	if got, _ := hear(t, server); got != "hello" {
		t.Error(got)
	}
	m.Close()
	<-over
}

func TestWhoseGuardedNamesCannotBeLookedUpIsRefused(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:443"}, guarded: []string{"one.example:443"}}, func(c *Config) {
		c.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("the line is dead") }
	})
	_, over := f.flow("93.184.216.34", 443)
	if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "are not known: the line is dead") {
		t.Error(r)
	}
}

func TestEveryFlowIsJudgedByWhatItsNameIsThen(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"time.example.com:123"}}, nil)
	f.put("time.example.com", "93.184.216.34")
	server := f.serve("93.184.216.34:123")
	f.serve("10.0.0.1:123")
	m, over := f.flow("time.example.com", 123)
	m.say(t, "one")
	_, from := hear(t, server)
	f.put("time.example.com", "10.0.0.1")
	m.say(t, "two") // goes where the first has gone
	if got, again := hear(t, server); got != "two" || again != from {
		t.Error(got, again, from)
	}
	m.Close()
	<-over
	_, over = f.flow("time.example.com", 123)
	if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "is private") {
		t.Error(r)
	}
	if len(f.looked) != 2 || len(f.sent) != 1 {
		t.Errorf("looked up %q, sent to %v", f.looked, f.sent)
	}
}

func TestOnlyThePeerIsHeard(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server, stranger := f.serve("93.184.216.34:123"), socket(t)
	m, _ := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	_, from := hear(t, server)
	stranger.WriteToUDPAddrPort([]byte("evil"), from)
	server.WriteToUDPAddrPort([]byte("good"), from)
	if got := m.hear(t); got != "good" {
		t.Errorf("heard %q", got)
	}
}

func TestAClientIsToldThatNobodyIsAtThePortAndGoesOn(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server := f.serve("93.184.216.34:123")
	at := server.LocalAddr().(*net.UDPAddr)
	server.Close()
	m, over := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	select {
	case <-m.told:
	case err := <-over:
		t.Fatalf("the flow is over: %v", err)
	}
	server, err := net.ListenUDP("udp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.SetDeadline(time.Now().Add(time.Minute))
	m.say(t, "again")
	if got, _ := hear(t, server); got != "again" {
		t.Error(got)
	}
	m.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

func TestASilentFlowEnds(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	f.g.silence = func(uint16) time.Duration { return 20 * time.Millisecond }
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
	if silence(53) >= silence(123) {
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
	if h := mustHost(t, "93.184.216.34"); f.g.Datagrams(t.Context(), newMouth(t), Target{Host: h, Port: 123}) == nil {
		t.Error("a flow after the end")
	}
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
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
		over <- f.g.Datagrams(ctx, m, Target{Host: mustHost(t, "93.184.216.34"), Port: 123, Protocol: "udp"})
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
		go f.g.Datagrams(t.Context(), w, Target{Host: mustHost(t, "93.184.216.34"), Port: 123, Protocol: "udp"})
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
