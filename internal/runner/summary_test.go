package runner

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestDenialsOfAnAgentsFilterAreCounted: the filter may be all that a run's network has.
func TestDenialsOfAnAgentsFilterAreCounted(t *testing.T) {
	p := policy.Network{SSHAgent: true}
	of, err := NewNetworks(&p)
	if err != nil {
		t.Fatal(err)
	}
	n, err := of.New(compile.NetConfig{SSHAgent: true}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	const listed, beyond = 100, 7
	for i := range listed + beyond {
		n.gateway.Deny(policy.Connection{Protocol: "ssh-agent", Host: fmt.Sprint(i), Reason: "no"})
	}
	if s := n.Summary().Gateway; len(s.Violations) != listed || s.Beyond != beyond {
		t.Errorf("%d listed, %d beyond", len(s.Violations), s.Beyond)
	}
}
