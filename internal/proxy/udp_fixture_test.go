package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A meadow is a proxy for datagrams in a made-up Internet, whose servers are on
// loopback.
type meadow struct {
	t *testing.T
	g *Proxy

	mu     sync.Mutex
	names  map[string][]netip.Addr
	places map[netip.AddrPort]string
	looked []string
	sent   []netip.AddrPort // sockets that were connected
	asked  int
	events []policy.Connection
}

type grants struct{ udp, hosts, deny, guarded []string }

func newMeadow(t *testing.T, of grants, change func(c *Config)) *meadow {
	t.Helper()
	f := &meadow{t: t, names: map[string][]netip.Addr{}, places: map[netip.AddrPort]string{}}
	c := Config{Network: policy.Network{Lookup: f.lookup}, DialUDP: f.connect, Route: routes("198.41.0.4")}
	c.Hosts, c.Deny, c.UDP = of.hosts, of.deny, of.udp
	for _, host := range of.guarded {
		c.Requests = append(c.Requests, policy.RequestRule{Host: host})
	}
	c.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		return nil, errors.New("nothing is connected here")
	}
	c.Observe = func(e policy.Connection) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, e)
	}
	c.Decide = func(context.Context, policy.Request) policy.Verdict {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked++
		return policy.Verdict{Allow: true}
	}
	if change != nil {
		change(&c)
	}
	var err error
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

// ended closes the proxy and returns the events.
func (f *meadow) ended() []policy.Connection {
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
	*net.UDPConn // what the proxy has of it
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
	h, err := hostrules.ParseHost(host)
	if err != nil {
		f.t.Fatal(err)
	}
	m, over := newMouth(f.t), make(chan error, 1)
	go func() { over <- f.g.CarryUDP(f.t.Context(), m, Target{Host: h, Port: port, Protocol: "udp"}) }()
	return m, over
}
