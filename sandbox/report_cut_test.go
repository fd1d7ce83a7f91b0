package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/rlimit"
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

// TestTheResourcesLineNamesWhatIsNotBounded: its word is not held, and the same line says of what it is not so.
func TestTheResourcesLineNamesWhatIsNotBounded(t *testing.T) {
	tasks := plan.Step{Do: plan.SetLimits{Settings: []rlimit.Setting{{Resource: rlimit.NProc, Soft: 64, Hard: 64}}}}
	for name, c := range map[string]struct {
		limits rlimit.Limits
		steps  []plan.Step
		want   string
	}{
		"the defaults":                        {steps: []plan.Step{tasks}, want: "memory, CPU time, disk"},
		"root, without a limit on processes":  {steps: []plan.Step{{Do: plan.SetLimits{}}, {Do: plan.Proc{}}}, want: "memory, CPU time, disk, processes"},
		"root, with a limit of the namespace": {steps: []plan.Step{{Do: plan.SetLimits{}}, {Do: plan.Proc{Quotas: plan.Quotas{PIDs: 400}}}}, want: "memory, CPU time, disk"},
		"limits of each process": {limits: rlimit.Limits{AS: rlimit.At(1 << 30), CPU: rlimit.At(5), FSize: rlimit.At(1 << 20)}, steps: []plan.Step{tasks},
			want: "memory as a whole (each process's is), CPU time as a whole (each process's is), disk as a whole (each file's is)"},
		"a hard limit as it was inherited": {limits: rlimit.Limits{AS: rlimit.Between(1<<30, rlimit.Inherited), CPU: rlimit.At(rlimit.Unlimited)}, steps: []plan.Step{tasks}, want: "memory, CPU time, disk"},
	} {
		p := plan.Plan{Steps: c.steps, Holdings: []plan.Holding{{Bound: policy.BoundResources, By: []plan.Mechanism{plan.EnvFilter}}}} // a mechanism that holds without evidence
		r := reportOf(runner.Account{Sandbox: &runner.Sandbox{Plan: p, Policy: Policy{Limits: policy.Limits{Rlimits: c.limits}}}, Evidence: &runner.Evidence{}})
		text, err := r.JSON()
		if line := r.Bound(policy.BoundResources); line.State != Partly || strings.Join(line.Unbounded, ", ") != c.want || !r.Held() || err != nil || !strings.Contains(string(text), `"state": "partly"`) {
			t.Errorf("%s: %s, %q, held %v, %v", name, line.State, line.Unbounded, r.Held(), err)
		}
		if printed := r.String(); !strings.Contains(printed, "  resources  PARTLY  ") || !strings.Contains(printed, "; not bounded: "+c.want+"\n") {
			t.Errorf("%s: it prints\n%s", name, printed)
		}
	}
	p := plan.Plan{Holdings: []plan.Holding{{Bound: policy.BoundResources, By: []plan.Mechanism{plan.Rlimits}}}}
	for state, a := range map[State]runner.Account{
		Open:     {Evidence: &runner.Evidence{}, Sandbox: &runner.Sandbox{Plan: p, Policy: Policy{Open: []Bound{policy.BoundResources}}}},
		Absent:   {Evidence: &runner.Evidence{}, Sandbox: &runner.Sandbox{Plan: p}},
		Promised: {Sandbox: &runner.Sandbox{Plan: p}},
	} {
		if line := reportOf(a).Bound(policy.BoundResources); line.State != state || (len(line.Unbounded) == 0) != (state == Open) {
			t.Errorf("%s, want %s; not bounded: %q", line.State, state, line.Unbounded)
		}
	}
}
