package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAnEmptyListOfHostsIsNone: CVE-2025-66479 was an empty list that left the
// isolation out.
func TestAnEmptyListOfHostsIsNone(t *testing.T) {
	for name, n := range map[string]Network{"nil": {}, "empty": {Hosts: []string{}}} {
		p, err := compile(inputOf(workspaceLike(), newHost(), Policy{Network: n}))
		if err != nil || !p.Namespaces.Net || n.Proxied() {
			t.Errorf("%s: net %t, gated %t, %v", name, p.Namespaces.Net, n.Proxied(), err)
		}
	}
}

// TestSecretsHaveTheLengthsThatTheProxyTakes: package policy and the proxy each have the bounds.
func TestSecretsHaveTheLengthsThatTheProxyTakes(t *testing.T) {
	for length, want := range map[int]bool{proxy.MinSecret - 1: false, proxy.MinSecret: true, proxy.MaxSecret: true, proxy.MaxSecret + 1: false} {
		n := Network{Hosts: []string{"a.example"}, Credentials: []policy.Credential{{Name: "A", Secret: strings.Repeat("s", length), Hosts: []string{"a.example"}, Place: policy.PlaceBearer}}}
		if err := (Policy{Network: n}).Validate(); (err == nil) != want {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}
