package sandbox

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestACaptureReadsAHostAsTheProxiesDo: what a program has asked a name server for, or
// connects to.
func TestACaptureReadsAHostAsTheProxiesDo(t *testing.T) {
	r := directRun(t, Network{Hosts: []string{"*.good.com", "king.example", "10.0.0.1:80"}, Deny: []string{"bad.good.com"}})
	o, err := r.outlet()
	if err != nil {
		t.Fatal(err)
	}
	denied := 0
	g := o.captureGate(r.sandbox.policy.Network)
	for host, want := range map[string]bool{
		"a.good.com": true, "A.GOOD.COM.": true, "king.example": true, "\u212aing.example": true, "10.0.0.1": true, "::ffff:10.0.0.1": true,
		"good.com": false, "bad.good.com": false, "BAD.good.com.": false, "evil.example": false, "evil.example\x00.good.com": false, "evil.example .good.com": false, "evil.example%00.good.com": false,
		"a..good.com": false, "-a.good.com": false, "xn--a.good.com": false, "10.1": false, "0xa.0.0.1": false, "012.0.0.1": false, "167772161": false, "127.0.0.1": false, "169.254.169.254": false, "::1": false, "fe80::1%lo": false, "10.0.0.2": false, "": false,
		strings.Repeat("a", 64) + ".good.com": false,
	} {
		if got := g.Allowed(host, 80); got != want {
			t.Errorf("%q: %v", host, got)
		}
		if want {
			continue
		}
		tool, conn := net.Pipe()
		if err := g.Tunnel(t.Context(), conn, host, 80, "tcp"); err == nil {
			t.Errorf("%q was carried", host)
		}
		if _, err := tool.Read(make([]byte, 1)); err == nil {
			t.Errorf("%q: the connection is open", host)
		}
		denied++
	}
	if g.Address != compile.CaptureDevice.Addr || g.Address.Contains(netip.MustParseAddr("10.0.0.1")) || denied == 0 {
		t.Errorf("the device is at %v", g.Address)
	}
}

// TestADatagramThatIsDeniedHasARemedyThatNewTakes: nothing helps one to an address of
// the capture's own that stands for no name, nor to a host whose requests are judged.
func TestADatagramThatIsDeniedHasARemedyThatNewTakes(t *testing.T) {
	r := directRun(t, Network{Hosts: []string{"*.good.com"}, Requests: []policy.RequestRule{{Host: "api.good.com:443"}}})
	o, err := r.outlet()
	if err != nil {
		t.Fatal(err)
	}
	const why = "only TCP, questions to DNS and the datagrams that the policy grants leave the sandbox"
	g := o.captureGate(r.sandbox.policy.Network)
	for _, c := range []struct {
		host string
		port uint16
		want string
	}{
		{"198.19.3.4", 443, "nothing does; the tool has to ask in another way"},
		{"api.good.com", 443, "nothing does; the tool has to use TCP, where the policy sees what is asked"},
		{"api.good.com", 123, `add "api.good.com:123" to Network.UDP, if it cannot do with TCP, if you trust that host: the tool chose it`},
		{"10.0.0.1", 443, `add "10.0.0.1:443" to Network.UDP, if that address is meant`},
	} {
		g.Denied("udp", c.host, c.port, why)
		all := o.gateway.Summary().Violations
		if v := violationOf(all[len(all)-1].Event); v.Remedy != c.want || v.Host != c.host {
			t.Errorf("%s:%d: %+v", c.host, c.port, v)
		}
	}
}
