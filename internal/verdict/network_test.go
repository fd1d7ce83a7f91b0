package verdict

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestAllowsSaysWhatThePolicyMeansOfTheNetwork(t *testing.T) {
	p := policy.Policy{Network: policy.Network{
		Hosts: []string{"example.com:443", "*.example.org", "10.1.0.0/16:22", "*.deny.example"}, Deny: []string{"secret.example.org"},
		UDP: []string{"example.com:123", "*.example.org:400-442", "10.1.0.0/16:123"}, Requests: []policy.RequestRule{{Host: "api.example.org:443"}},
		Capture:  func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil },
		Loopback: []uint16{5432}, Unix: []string{"/run/docker.sock"},
	}}
	udp := func(host string, port int) Access {
		return Access{Op: OpConnect, Network: "udp", Host: host, Port: port}
	}
	tcp := func(host string, port int) Access {
		return Access{Op: OpConnect, Network: "tcp", Host: host, Port: port}
	}
	for _, c := range []struct {
		name  string
		act   Access
		ok    bool
		field string
	}{
		{"a host that is named", tcp("example.com", 443), true, "Network.Hosts[0]"},
		{"in another spelling", tcp("EXAMPLE.com.", 443), true, "Network.Hosts[0]"},
		{"at another port", tcp("example.com", 80), false, ""},
		{"below a wildcard", tcp("a.b.example.org", 1), true, "Network.Hosts[1]"},
		{"the wildcard's own name", tcp("example.org", 1), false, ""},
		{"denied below a wildcard", tcp("secret.example.org", 443), false, "Network.Deny[0]"},
		{"an address in a range", tcp("10.1.2.3", 22), true, "Network.Hosts[2]"},
		{"an address outside of it", tcp("10.2.2.3", 22), false, ""},
		{"a metadata service", tcp("169.254.169.254", 80), false, ""},
		{"an odd spelling of an address", tcp("0x0a010203", 22), false, ""},
		{"no port", tcp("example.com", 0), false, ""},
		{"a datagram to where connections may be made", udp("example.com", 443), false, "Network.UDP"},
		{"a datagram that is granted", udp("Example.com.", 123), true, "Network.UDP[0]"},
		{"a connection to where datagrams may be sent", tcp("example.com", 123), false, "Network.Hosts"},
		{"a datagram below a wildcard", udp("a.example.org", 442), true, "Network.UDP[1]"},
		{"a datagram to what is denied", udp("secret.example.org", 442), false, "Network.Deny[0]"},
		{"a datagram past a request rule", udp("api.example.org", 443), false, "Network.UDP"},
		{"a datagram to the same host's other port", udp("api.example.org", 442), true, "Network.UDP[1]"},
		{"a datagram to an address", udp("10.1.2.3", 123), true, "Network.UDP[2]"},
		{"a datagram to an address that nothing names", udp("10.2.2.3", 123), false, "Network.UDP"},
		{"a datagram to the metadata service", udp("169.254.169.254", 123), false, "Network.UDP"},
		{"a datagram to the sandbox's own loopback", udp("127.0.0.1", 123), true, ""},
		{"a datagram to no port", udp("example.com", 0), false, ""},
		{"a port of the harness's loopback", tcp("127.0.0.1", 5432), true, "Network.Loopback[0]"},
		{"another of its own", tcp("::1", 80), true, ""},
		{"a socket that is granted", Access{Op: OpConnect, Network: "unix", Path: "/run/docker.sock"}, true, "Network.Unix[0]"},
		{"to change that socket", Access{Op: OpRemove, Path: "/run/docker.sock"}, false, "Network.Unix[0]"},
		{"to read beside it", Access{Op: OpRead, Path: "/run/other.sock"}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok, why := Allows(p, c.act)
			if ok != c.ok || c.field != "" && why.Field != c.field {
				t.Errorf("%v by %q (%v), want %v by %q", ok, why.Field, why, c.ok, c.field)
			}
			if !ok && strings.TrimSpace(why.Why) == "" {
				t.Error("it does not say why")
			}
		})
	}
	for _, a := range []Access{tcp("example.com", 443), udp("example.com", 443)} {
		if ok, why := Allows((policy.Policy{}), a); ok || why.Remedy == "" {
			t.Errorf("the zero policy: %v, %v", ok, why)
		}
		if ok, why := Allows((policy.Policy{Network: policy.Network{Hosts: []string{"a.example"}}}), a); ok || why.Remedy == "" {
			t.Errorf("another host: %v, %v", ok, why)
		}
	}
}

// TestAllowsKnowsTheNetworkOfWhatIsNotWalled: where neither files nor processes are
// bounded there are the proxies and the ports of Loopback, and no other socket.
func TestAllowsKnowsTheNetworkOfWhatIsNotWalled(t *testing.T) {
	open := []policy.Bound{policy.BoundFiles, policy.BoundProcesses}
	some := policy.Policy{Open: open, Network: policy.Network{Hosts: []string{"example.org"}, Loopback: []uint16{5432}}}
	for _, c := range []struct {
		p         policy.Policy
		do        Op
		net, host string
		port      int
		ok        bool
	}{
		{some, OpConnect, "tcp", "example.org", 443, true},
		{some, OpConnect, "tcp", "example.com", 443, false},
		{some, OpConnect, "tcp", "127.0.0.1", 5432, true},
		{some, OpConnect, "tcp", "localhost", 5432, true},
		{some, OpConnect, "tcp", "127.0.0.1", 80, false},
		{some, OpConnect, "tcp", "::1", 5432, false},
		{some, OpConnect, "udp", "127.0.0.1", 5432, false},
		{some, OpBind, "tcp", "127.0.0.1", 5432, false},
		{some, OpConnect, "unix", "", 0, false},
		{policy.Policy{Open: open}, OpConnect, "tcp", "127.0.0.1", 5432, false},
		{policy.Policy{Open: open}, OpConnect, "tcp", "example.org", 443, false},
	} {
		if ok, why := Allows(c.p, Access{Op: c.do, Network: c.net, Host: c.host, Port: c.port, Path: "/run/db.sock"}); ok != c.ok || why.Why == "" {
			t.Errorf("%s %s %s %d: %v, %v", c.do, c.net, c.host, c.port, ok, why)
		}
	}
}
