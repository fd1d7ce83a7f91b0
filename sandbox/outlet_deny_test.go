package sandbox

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestDenialsWithoutAGatewayAreCountedToo: an agent's filter may be all that there is.
func TestDenialsWithoutAGatewayAreCountedToo(t *testing.T) {
	o := new(outlet)
	for i := range mostDenied + 7 {
		o.deny(proxy.Event{Protocol: "ssh-agent", Host: fmt.Sprint(i), Reason: "no"})
	}
	if len(o.denied) != mostDenied || o.beyond != 7 {
		t.Errorf("%d listed, %d beyond", len(o.denied), o.beyond)
	}
	r := &Report{Bounds: []BoundReport{{Bound: policy.BoundNetwork}}}
	(&run{out: o}).reportNetwork(r)
	if notes := r.Bounds[0].Notes; len(notes) != 1 || notes[0] != "7 denials more than are listed" || len(r.Violations) != mostDenied {
		t.Errorf("%q, %d", notes, len(r.Violations))
	}
}
