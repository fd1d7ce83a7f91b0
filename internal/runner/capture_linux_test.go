package runner

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
	o := directNetwork(t, policy.Network{Hosts: []string{"*.good.com", "king.example", "10.0.0.1:80"}, Deny: []string{"bad.good.com"}})
	denied := 0
	g := o.CaptureGate()
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
