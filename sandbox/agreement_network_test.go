package sandbox

import (
	"net/netip"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/egress"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// A carrier is what the harness does beside a plan and a profile: who reaches its
// proxies is carried where its gateway says.
type carrier struct{ gateway *egress.Gateway }

func carrierOf(p Policy) (*carrier, error) {
	c, err := p.Network.gate()
	if err != nil {
		return nil, err
	}
	g, err := egress.New(c)
	if err != nil {
		return nil, err
	}
	return &carrier{g}, g.Close() // what it judges by stays
}

// carries reports whether a proxy connects to what the act names.
func (c *carrier) carries(a Act) bool {
	h, err := egress.ParseHost(a.Host)
	return err == nil && a.Do == ToConnect && a.Network == "tcp" && c.gateway.Allowed(h, uint16(a.Port)).Outcome == egress.Allow
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
		q := seatbelt.Query{Operation: "network-outbound", Protocol: "tcp", Address: netip.AddrPortFrom(loopback4, uint16(port)).String()}
		if !h.Evaluate(q).Allow {
			return false
		}
	}
	return true
}

// TestAProfileOpensThePortsOfItsRunAndNoOthers: of the loopback, TCP to the proxies
// and to Loopback; of everything else, nothing, whatever Hosts names.
func TestAProfileOpensThePortsOfItsRunAndNoOthers(t *testing.T) {
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
			for port := 1; port < 1<<16; port++ {
				at := netip.AddrPortFrom(loopback4, uint16(port))
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
