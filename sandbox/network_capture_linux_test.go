package sandbox

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestADatagramThatIsDeniedHasARemedyThatNewTakes: nothing helps one to an address of
// the capture's own that stands for no name, nor to a host whose requests are judged.
func TestADatagramThatIsDeniedHasARemedyThatNewTakes(t *testing.T) {
	n := Network{Hosts: []string{"*.good.com"}, Requests: []policy.RequestRule{{Host: "api.good.com:443"}}}
	of, err := runner.NewNetworks(&n)
	if err != nil {
		t.Fatal(err)
	}
	o, err := of.New(darwin.NetConfig(n), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	const why = "only TCP, questions to DNS and the datagrams that the policy grants leave the sandbox"
	g := o.CaptureGate()
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
		all := o.Summary().Gateway.Violations
		if v := runner.ViolationOf(all[len(all)-1].Connection); v.Remedy != c.want || v.Host != c.host {
			t.Errorf("%s:%d: %+v", c.host, c.port, v)
		}
	}
}
