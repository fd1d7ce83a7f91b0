package child

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// TestAProgramThatGainedRightsIsNoStage: a setuid program that imports this package would do as root what its caller's program says.
// Two user ids stand for the bit: the kernel sets AT_SECURE for both (cap_bprm_creds_from_file of security/commoncap.c).
func TestAProgramThatGainedRightsIsNoStage(t *testing.T) {
	const twoIDs = "HOLDFAST_TEST_TWO_IDS"
	if os.Getenv(twoIDs) != "" {
		if err := syscall.Setresuid(65534, 0, 0); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(wire.ExecPath)
		c.Env = []string{wire.FDName + "=3"}
		out, _ := c.CombinedOutput()
		t.Logf("status %d: %s", c.ProcessState.ExitCode(), out)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to have two user ids")
	}
	for env, want := range map[string]string{"": "is not a sealed memfd", twoIDs + "=1": wire.NotByASandbox} {
		c := exec.Command(wire.ExecPath)
		c.Env = []string{wire.FDName + "=3"}
		if env != "" {
			c = exec.Command("/proc/self/exe", "-test.run=^TestAProgramThatGainedRightsIsNoStage$", "-test.v")
			c.Env = append(os.Environ(), env)
		}
		if out, _ := c.CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("with %q it says %q, not %q", env, out, want)
		}
	}
}
