package compile

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A tool's process stands ready only where its filters, loaded already, let pass what it has still to call, and where it takes no
// place that the policy counts.
func TestToolsStandReadyWhereTheirFiltersLetThem(t *testing.T) {
	denies := func(name string) policy.Policy {
		return policy.Policy{Syscalls: seccomp.Default().With(seccomp.Rule{Names: []string{name}, Action: seccomp.Errno(1)})}
	}
	anywhere := []policy.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}
	for _, tt := range []struct {
		name   string
		change func(*host.Facts)
		policy policy.Policy
		want   bool
	}{
		{"the default profile", func(*host.Facts) {}, policy.Policy{}, true},
		{"no profile", func(*host.Facts) {}, policy.Policy{Open: []policy.Bound{policy.BoundSyscalls}}, true},
		{"without namespaces", fixture.WithoutNamespaces, policy.Policy{May: anywhere}, true},
		{"a profile that refuses futex", func(*host.Facts) {}, denies("futex"), false},
		{"a profile that refuses chdir", func(*host.Facts) {}, denies("chdir"), false},
		{"a profile that refuses setsid", func(*host.Facts) {}, denies("setsid"), false},
		{"a profile that refuses mkdir, which comes after execve", func(*host.Facts) {}, denies("mkdir"), true},
		{"a limit on processes", func(*host.Facts) {}, policy.Policy{Limits: policy.Limits{Rlimits: rlimit.Limits{NProc: rlimit.At(1000)}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := fixture.Host()
			tt.change(&facts)
			p, err := Plan(inputOf(fixture.WorkspaceTree(), facts, tt.policy))
			if err != nil {
				t.Fatal(err)
			}
			if p.Ready != tt.want {
				t.Errorf("stands ready: %v, want %v", p.Ready, tt.want)
			}
			if !p.Uses(plan.Seccomp) {
				t.Error("the plan has no filter, and shows nothing")
			}
		})
	}
}
