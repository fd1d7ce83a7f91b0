package sandbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelAReportKnowsAContextsDeadline: which bounds the time, as the policy's own does; a context without
// one, or one that nothing obeys, bounds nothing.
func TestKernelAReportKnowsAContextsDeadline(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		late, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		p := attackPolicy(t, "", w)
		s := attackSandbox(t, p, w)
		p.Limits.WallClock = time.Hour
		limited := attackSandbox(t, p, w)
		p.Limits.WallClock, p.Open = 0, []Bound{policy.BoundTime}
		open := attackSandbox(t, p, w)
		for name, c := range map[string]struct {
			s     *Sandbox
			ctx   context.Context
			state State
			by    string
		}{
			"a deadline":                       {s, late, Held, "context (Cancel is called in the harness at "},
			"none":                             {s, t.Context(), Open, ""},
			"a deadline beside the policy's":   {limited, late, Held, "deadline ("},
			"a policy that leaves it open":     {open, late, Open, ""},
			"a deadline that nothing looks at": {s, late, Open, ""},
		} {
			cmd := c.s.CommandContext(c.ctx, "/bin/true")
			cmd.Dir = "/"
			if strings.Contains(name, "nothing") {
				cmd.Cancel = nil
			}
			if line := cmd.Report().Bound(policy.BoundTime); line.State != c.state && line.State != Promised {
				t.Errorf("%s, before its start: %s", name, line.State)
			}
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			r := cmd.Report()
			if line := r.Bound(policy.BoundTime); line.State != c.state || !strings.Contains(r.String(), c.by) {
				t.Errorf("%s: want %s by %q:\n%s", name, c.state, c.by, r)
			}
		}
	})
}
