package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestARunThatWasCutShortIsNotSaidToHaveNoBounds: what nobody has read is
// neither held nor absent.
func TestARunThatWasCutShortIsNotSaidToHaveNoBounds(t *testing.T) {
	p := plan.Plan{Holdings: []plan.Holding{
		{Bound: policy.BoundFiles, By: []plan.Mechanism{plan.MountNamespace, plan.Landlock}},
		{Bound: policy.BoundEnvironment, By: []plan.Mechanism{plan.EnvFilter}},
		{Bound: policy.BoundNetwork, Lost: []plan.Loss{{What: "the network is reachable", Absent: true}}},
	}}
	tests := []struct {
		name     string
		evidence *runner.Evidence
		files    State
		environ  State
	}{
		{"the evidence was not read", &runner.Evidence{Unread: true}, Unread, Unread},
		{"the evidence shows nothing", &runner.Evidence{}, Absent, Held},
		{"the tool was not executed", nil, Promised, Promised},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := reportOf(runner.Account{Sandbox: &runner.Sandbox{Plan: p}, Evidence: test.evidence})
			if r.Held() {
				t.Errorf("held: %s", r)
			}
			for b, want := range map[Bound]State{policy.BoundFiles: test.files, policy.BoundEnvironment: test.environ, policy.BoundNetwork: Absent} {
				if got := r.Bound(b).State; got != want {
					t.Errorf("%s is %s, want %s", b, got, want)
				}
			}
			if unread := test.files == Unread; unread && (strings.Contains(r.String(), "NOT") || !strings.Contains(r.String(), "landlock (not read)")) {
				t.Errorf("it prints\n%s", r)
			}
		})
	}
}
