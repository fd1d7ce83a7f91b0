package sandbox

import (
	"os/exec"
	"os/signal"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelAHarnessThatIgnoresItsChildren (SIGCHLD) has no status of them, as with os/exec; the run ends all the same, and its tool ignores its own.
func TestKernelAHarnessThatIgnoresItsChildren(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		signal.Ignore(unix.SIGCHLD)
		const script = "grep SigIgn /proc/self/status"
		want, err := exec.Command("/bin/sh", "-c", script).Output()
		if len(want) == 0 {
			t.Fatal(err)
		}
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		session, err := s.Open(t.Context())
		kerneltest.Need(t, kerneltest.LandlockABI(6))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		for name, c := range map[string]*Cmd{"a command": s.Command("/bin/sh", "-c", script), "a session's": session.Command("/bin/sh", "-c", script)} {
			c.Dir = "/"
			if out, _ := c.Output(); string(out) != string(want) {
				t.Errorf("%s: %q, want %q", name, out, want)
			}
		}
	})
}
