package sandbox

import (
	"context"
	"os"
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
			"an own Cancel":                    {s, late, Open, ""},
			"an own Cancel and a WaitDelay":    {s, late, Held, "context (Cancel is called in the harness at "},
		} {
			cmd := c.s.CommandContext(c.ctx, "/bin/true")
			cmd.Dir = "/"
			if strings.Contains(name, "nothing") {
				cmd.Cancel = nil
			}
			if strings.Contains(name, "own Cancel") {
				cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
			}
			if strings.Contains(name, "WaitDelay") {
				cmd.WaitDelay = time.Minute
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

// TestKernelADeadlineThatACancelOfTheCallersLetsPass holds the time for no tool, and the report does not say so. Here the context is cancelled before.
func TestKernelADeadlineThatACancelOfTheCallersLetsPass(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := attackSandbox(t, attackPolicy(t, "", w), w).CommandContext(ctx, "/bin/sh", "-c", "trap 'echo obeyed not' INT; read line; echo ran on")
		c.Dir = "/"
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		signalled := make(chan struct{})
		c.Cancel = func() error { defer close(signalled); return c.Process.Signal(os.Interrupt) }
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-signalled
		if line := c.Report().Bound(policy.BoundTime); line.State != Open {
			t.Errorf("the time is %s of a tool that runs on", line.State)
		}
		in.Close()
		c.Wait()
	})
}
