package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func explains(p *Policy) { p.Network.Explain = true }

// TestKernelAPolicyWithoutHostsSaysSo: a request is answered with the reason and is a violation, and
// nothing is reached; without a network namespace there is no proxy.
func TestKernelAPolicyWithoutHostsSaysSo(t *testing.T) {
	inNetwork(t, explains, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "fetch", "http://allowed.example/", "https://allowed.example/", "http://93.184.216.1/", "http://169.254.169.254/")
		line := r.Bound(policy.BoundNetwork)
		if strings.Contains(out, "served") || line.State == Absent || line.State == Open {
			t.Fatalf("got\n%s%s", out, r)
		}
		if !s.ready.Plan.Namespaces.Net {
			if len(r.Violations) > 0 || strings.Contains(strings.Join(s.Command("/bin/true").Environ(), "\n"), "_proxy") {
				t.Errorf("without a network namespace:\n%s%s", out, r)
			}
			return
		}
		if lines := strings.Split(out, "\n"); line.State != Held || !strings.HasPrefix(lines[0], "403 ") || !strings.Contains(lines[1], "refused by the sandbox: allowed.example:443") {
			t.Errorf("got\n%s%s", out, r)
		}
		if len(r.Violations) != 4 || !strings.Contains(r.String(), `add "allowed.example:80" to Network.Hosts`) {
			t.Errorf("%d violations:\n%s", len(r.Violations), r)
		}
		quiet, r := says(t, s, "fetch")
		if len(r.Violations) > 0 || r.Bound(policy.BoundNetwork).State != Held {
			t.Errorf("a tool that asks for nothing: %s%s", quiet, r)
		}
	})
}

// TestKernelAnExplanationIsServedOrNotNamed: a command for which os/exec starts no goroutine
// starts all the same, and is not led to a proxy that does not answer.
func TestKernelAnExplanationIsServedOrNotNamed(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		s := networkSandbox(t, w, explains)
		for name, c := range map[string]struct {
			change func(c *Cmd)
			served bool
		}{
			"as it is made":  {func(*Cmd) {}, true},
			"without Cancel": {func(c *Cmd) { c.Cancel = nil }, false},
		} {
			cmd := hostile(t, s, "fetch", "http://allowed.example/")
			c.change(cmd)
			out, err := cmd.Cmd.Output()
			if refused := strings.HasPrefix(string(out), "403 "); err != nil || refused != c.served {
				t.Errorf("%s: %q, %v\n%s", name, out, err, cmd.Report())
			}
		}
	})
}

// TestKernelAnExplanationIsBounded: a tool that opens as many connections as it can holds no more
// of the harness than the proxy admits, and the run ends.
func TestKernelAnExplanationIsBounded(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		s := networkSandbox(t, w, explains)
		cmd := hostile(t, s, "clutter")
		cmd.Run()
		if len(cmd.Report().Violations) == 0 {
			t.Errorf("%s", cmd.Report())
		}
	})
}

// TestPresetsExplain: those without hosts, and none of the others needs to.
func TestPresetsExplain(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		p    Policy
		want bool
	}{"Workspace": {Workspace(dir), true}, "ReadOnly": {ReadOnly(dir), true}, "Unconfined": {Unconfined(), false}, "zero": {Policy{}, false}} {
		if c.p.Network.Explain != c.want {
			t.Errorf("%s: %t", name, c.p.Network.Explain)
		}
		c.p.Network.Host = true
		if err := c.p.Validate(); name != "Unconfined" && err != nil {
			t.Errorf("%s with the harness's network: %v", name, err)
		}
	}
}
