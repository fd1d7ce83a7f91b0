package sandbox

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAReportFromMacOSClaimsNoMoreThanIsKnown: a bound with a loss is never held,
// one without a mechanism is absent, and before the start all is a promise.
func TestAReportFromMacOSClaimsNoMoreThanIsKnown(t *testing.T) {
	p := Policy{
		Files: Files{Read: []string{"/usr"}, Write: []string{"/ws"}, Private: []string{"/tmp"}, CopyOnWrite: []string{"/cache"}, Make: []policy.File{{Path: "/tmp/f"}}},
		Open:  []Bound{policy.BoundPrivileges},
	}
	m, err := verdict.New(p)
	if err != nil {
		t.Fatal(err)
	}
	states := func(started bool) map[Bound]State {
		out := map[Bound]State{}
		var e *runner.Evidence
		if started {
			e = runner.ProfileEvidence(nil, 3, 0, "")
		}
		for _, h := range (darwin.Profile{Evaluator: m}).Holdings() {
			open := slices.Contains(p.Open, h.Bound) || h.Bound == policy.BoundTime
			line := judge(h, e, open)
			out[h.Bound] = line.State
			for _, r := range line.Mechanisms {
				if r.Held != started || started && r.Evidence == "" {
					t.Errorf("%s: %+v", h.Bound, r)
				}
			}
		}
		return out
	}
	want := map[Bound]State{
		policy.BoundFiles: Weaker, policy.BoundNetwork: Held, policy.BoundProcesses: Weaker, policy.BoundSyscalls: Absent, policy.BoundPrivileges: Open, policy.BoundResources: Held, policy.BoundEnvironment: Held, policy.BoundTime: Open,
	}
	if got := states(true); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for b, s := range states(false) {
		if s != Promised && s != Absent && s != Open {
			t.Errorf("%s is %s before the start", b, s)
		}
	}
	var lost []string
	for _, h := range (darwin.Profile{Evaluator: m}).Holdings() {
		if h.Bound == policy.BoundFiles {
			for _, l := range h.Lost {
				lost = append(lost, l.What)
			}
		}
	}
	if got := strings.Join(lost, "; "); !strings.Contains(got, "/cache cannot be written; /tmp cannot be private") || !strings.Contains(got, "/tmp/f cannot be made") {
		t.Error(got)
	}
	for _, mechanism := range []plan.Mechanism{plan.Seatbelt, plan.ProcessGroup, plan.Rlimits, plan.EnvFilter, plan.Deadline, plan.EgressProxy} {
		if held, shown := runner.ProfileEvidence(nil, -1, 1, "HTTP").Holds(mechanism); !held || shown == "" {
			t.Errorf("%s has no evidence", mechanism)
		}
	}
}
