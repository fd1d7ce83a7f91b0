package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelProbeOnAnOldKernel: Linux 5.10 has neither mount_setattr, nor Landlock, nor listeners that wait. The facts and New say so, and
// a policy that accepts it runs a tool, with a report that says what is lost.
func TestKernelProbeOnAnOldKernel(t *testing.T) {
	kerneltest.Parallel(t)
	without := []kerneltest.Feature{kerneltest.MountSetattr, kerneltest.Landlock, kerneltest.SeccompListener}
	if f := Probe(); !f.KernelAtLeast(5, 12) {
		without = nil
	}
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
			f := Probe()
			if got, want := missing(f), "namespaces overlayfs Landlock notification"; got != want {
				t.Errorf("missing: %q, want %q: %+v", got, want, f)
			}
			p := workspaceHere(t)
			p.Limits.WallClock = 10 * time.Minute
			_, err := New(p)
			if got := fixture.UnsupportedBounds(t, err); got != "files processes time" {
				t.Errorf("New refuses %q: %v", got, err)
			}
			if err == nil || !strings.Contains(err.Error(), "Linux 5.12 or newer") {
				t.Errorf("the remedy is not named: %v", err)
			}
			p = p.InContainer()
			p.May = append(p.May, policy.BoundTime)
			c := commandIn(t, p, "exit 3")
			var exit interface{ ExitCode() int }
			if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
				t.Fatalf("the tool ended with %v", err)
			}
			if got := weaknesses(c.Report()); got != "files absent, processes absent, time weaker" {
				t.Errorf("not held: %q\n%s", got, c.Report())
			}
		})
	})
}
