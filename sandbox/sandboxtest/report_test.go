package sandboxtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestCheckReport(t *testing.T) {
	line := func(b sandbox.Bound, s sandbox.State) sandbox.BoundReport {
		return sandbox.BoundReport{Bound: b, State: s}
	}
	files := line(policy.BoundFiles, sandbox.Held)
	for _, test := range []struct {
		name   string
		bounds []sandbox.BoundReport
		may    []sandbox.Bound
		fails  bool
	}{
		{"all held", []sandbox.BoundReport{files}, nil, false},
		{"one is open because the policy says so", []sandbox.BoundReport{files, line(policy.BoundTime, sandbox.Open)}, nil, false},
		{"one is absent", []sandbox.BoundReport{files, line(policy.BoundNetwork, sandbox.Absent)}, nil, true},
		{"one is weaker", []sandbox.BoundReport{files, line(policy.BoundNetwork, sandbox.Weaker)}, nil, true},
		{"the tool was never executed", []sandbox.BoundReport{line(policy.BoundFiles, sandbox.Promised)}, nil, false},
		{"the run was over before its evidence was read", []sandbox.BoundReport{line(policy.BoundFiles, sandbox.Unread)}, nil, true},
		{"one is absent and may be", []sandbox.BoundReport{files, line(policy.BoundNetwork, sandbox.Absent)}, []sandbox.Bound{policy.BoundNetwork}, false},
		{"one is absent and another may be", []sandbox.BoundReport{files, line(policy.BoundNetwork, sandbox.Absent)}, []sandbox.Bound{policy.BoundTime}, true},
		{"there is no bound at all", nil, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &notes{TB: t}
			checkReport(r, &sandbox.Report{Tool: "tool", Bounds: test.bounds}, test.may)
			if failed := r.log != ""; failed != test.fails || failed && !strings.Contains(r.log, "tool") {
				t.Errorf("it said %q", r.log)
			}
		})
	}
}

// notes is a test that notes its errors.
type notes struct {
	testing.TB
	log string
}

func (n *notes) Helper()                   {}
func (n *notes) Errorf(f string, a ...any) { n.log += fmt.Sprintf(f, a...) }
