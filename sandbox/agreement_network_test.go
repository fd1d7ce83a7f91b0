package sandbox

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A carrier is what the harness does beside a plan and a profile: who reaches its
// proxies is carried where its gateway says.
type carrier struct{ gateway *proxy.Proxy }

func carrierOf(p Policy) (*carrier, error) {
	g, err := proxy.New(proxy.Config{Network: p.Network})
	if err != nil {
		return nil, err
	}
	return &carrier{g}, g.Close() // what it judges by stays
}

// carries reports whether a proxy connects to what the act names. The addresses of
// localhost it refuses when it knows them: no rule of the generator's names them.
func (c *carrier) carries(a Access) bool {
	h, err := hostrules.ParseHost(a.Host)
	if a.Network == "udp" { // by the capture
		return err == nil && a.Op == OpConnect && c.gateway.AllowedDatagrams(h, uint16(a.Port)).Outcome == hostrules.Allow
	}
	return err == nil && !verdict.IsLoopback(a.Host) && a.Op == OpConnect && a.Network == "tcp" && c.gateway.Allowed(h, uint16(a.Port)).Outcome == hostrules.Allow
}

// runPorts are where the proxies of the agreement's runs are.
var runPorts = []int{49152, 49153}

// A heldProfile is a policy's profile, read back, and the harness that serves it.
type heldProfile struct {
	*seatbelt.Profile
	*carrier
}

// reaches reports whether the proxies can be connected to.
func (h heldProfile) reaches() bool {
	for _, port := range runPorts {
		q := seatbelt.Query{Operation: "network-outbound", Protocol: "tcp", Address: netip.AddrPortFrom(compile.Loopback4, uint16(port)).String()}
		if !h.Evaluate(q).Allow {
			return false
		}
	}
	return true
}

// TestAProfileOpensThePortsOfItsRunAndNoOthers: of the loopback, TCP to the proxies
// and to Loopback; of everything else, nothing, whatever Hosts names.
func TestAProfileOpensThePortsOfItsRunAndNoOthers(t *testing.T) {
	kerneltest.Long(t)
	t.Parallel()
	for _, tt := range []struct {
		name string
		of   Network
		want []int
	}{
		{"nothing", Network{}, nil},
		{"hosts", Network{Hosts: []string{"*", "127.0.0.0/8"}}, runPorts},
		{"hosts and a database", Network{Hosts: []string{"example.org"}, Loopback: []uint16{5432}}, append([]int{5432}, runPorts...)},
		{"a database alone", Network{Loopback: []uint16{5432}}, []int{5432}},
		{"an agent alone", Network{SSHAgent: true}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := emitted(Policy{Files: Files{Read: []string{"/usr"}}, Network: tt.of})
			if err != nil {
				t.Fatal(err)
			}
			asks := func(operation, protocol string, at netip.AddrPort) bool {
				return h.Evaluate(seatbelt.Query{Operation: operation, Protocol: protocol, Address: at.String()}).Allow
			}
			want := map[int]bool{}
			for _, port := range tt.want {
				want[port] = true
			}
			every := kerneltest.Amount(t, 13, 13, 1)
			for port := 1; port < 1<<16; port++ {
				if port%every != 0 && !want[port-1] && !want[port] && !want[port+1] {
					continue
				}
				at := netip.AddrPortFrom(compile.Loopback4, uint16(port))
				if got := asks("network-outbound", "tcp", at); got != want[port] {
					t.Fatalf("TCP to %s is allowed: %v", at, got)
				}
				if port%997 == 0 || want[port] {
					far(t, asks, uint16(port))
				}
				if asks("network-outbound", "udp", at) || asks("network-bind", "tcp", at) || asks("network-inbound", "tcp", at) {
					t.Fatalf("%s is open to more than connections", at)
				}
			}
		})
	}
}

// far asks about addresses that are not the loopback's.
func far(t *testing.T, asks func(operation, protocol string, at netip.AddrPort) bool, port uint16) {
	t.Helper()
	for _, host := range []string{"203.0.113.7", "10.1.2.3", "2001:db8::1", "0.0.0.0"} {
		if at := netip.AddrPortFrom(netip.MustParseAddr(host), port); asks("network-outbound", "tcp", at) {
			t.Errorf("TCP to %s is allowed", at)
		}
	}
}

// A heldPlan is a policy's plan, and the harness that serves it.
type heldPlan struct {
	plan.Plan
	*carrier
	sockets []string
}

// planned compiles a policy as New would, for a host of these facts.
func planned(p Policy, l resolve.Tree, facts Host, change func(*compile.Input)) (h heldPlan, err error) {
	in := planInput(l, facts, p)
	in.Policy.Network, in.NetConfig, in.Devices = Network{Host: p.Network.Host}, compile.NewNetConfig(p.Network), resolve.OwnDevices
	if change != nil {
		change(&in)
	}
	in.Facts.TUN = fixture.Yes("TUN")
	for _, e := range l.Entries {
		if e.Kind == pathrule.Socket && !e.Shown && !slices.Contains(p.Open, policy.BoundFiles) {
			h.sockets = append(h.sockets, e.Path)
		}
	}
	if h.carrier, err = carrierOf(p); err != nil {
		return h, err
	}
	h.Plan, err = compile.Plan(in)
	return h, err
}

// model is the plan's, with the harness that serves it and what is a socket.
func (h heldPlan) model() *planModel {
	m := modelOf(h.Plan)
	m.carrier = h.carrier
	for _, p := range h.sockets {
		m.sockfile[p] = true
	}
	return m
}

// makesSocket asks the filters about the calls that come before connect(2), and
// those of a server.
func (m *planModel) makesSocket(a Access) bool {
	family, kind := uint64(2), uint64(1) // AF_INET, SOCK_STREAM
	switch {
	case a.Network == "unix":
		family = 1
	case isIPv6(a.Host):
		family = 10 // AF_INET6
	}
	if a.Network == "udp" {
		kind = 2
	}
	return m.passes("socket", family, kind, 0) && (a.Op != OpBind || m.passes("bind", 3, 0, 16))
}

func isIPv6(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Is6()
}

func (m *planModel) passes(name string, args ...uint64) bool {
	call, err := seccomp.NewCall(seccomp.AMD64, name, args...)
	if err != nil {
		panic(err)
	}
	for _, f := range m.filters {
		if action, err := f.Evaluate(call); err == nil && action != seccomp.Allow && action != seccomp.Log {
			return false
		}
	}
	return true
}

// reaches reports whether an address can be bound or connected to, by the proxies
// if need be.
func (m *planModel) reaches(a Access) bool {
	switch {
	case m.network && (a.Op == OpBind || verdict.IsLoopback(a.Host)):
		return true
	case m.network && a.Network == "udp":
		return m.captured && m.carrier.carries(a)
	case m.network:
		return m.listens[compile.SlotHTTP] && m.listens[compile.SlotSOCKS] && m.carrier.carries(a)
	case !m.guarded:
		return true
	case verdict.IsLoopback(a.Host):
		fixed := m.connects[:len(m.connects)-m.given]
		return a.Op == OpConnect && !isIPv6(a.Host) && slices.Contains(fixed, netip.AddrPortFrom(compile.Loopback4, uint16(a.Port)))
	}
	return a.Network == "tcp" && a.Op == OpConnect && m.given == 2 && m.carrier.carries(a)
}
