package runner

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// TestDenialsWithoutAGatewayAreCountedToo: an agent's filter may be all that there is.
func TestDenialsWithoutAGatewayAreCountedToo(t *testing.T) {
	o := new(Network)
	for i := range maxDenied + 7 {
		o.deny(proxy.Event{Protocol: "ssh-agent", Host: fmt.Sprint(i), Reason: "no"})
	}
	if s := o.Summary(); len(s.Denied) != maxDenied || s.Beyond != 7 {
		t.Errorf("%d listed, %d beyond", len(s.Denied), s.Beyond)
	}
}
