package sandbox

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelSignalsThatTheHarnessIgnores when it starts a command are ignored by the command's tool, and no others, whatever the harness
// ignored when it opened the session.
func TestKernelSignalsThatTheHarnessIgnores(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		of := attackSandbox(t, attackPolicy(t, "", w), w)
		defer ignore(nil)
		for _, atOpen := range [][]os.Signal{nil, {syscall.SIGUSR1}} {
			ignore(atOpen)
			s, err := of.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, now := range [][]os.Signal{nil, {syscall.SIGUSR1}, {syscall.SIGUSR2}, {syscall.SIGUSR1, syscall.SIGUSR2, realTime}} {
				ignore(now)
				const script = "grep ^SigIgn: /proc/self/status"
				want, err := exec.Command("/bin/sh", "-c", script).Output()
				if err != nil {
					t.Fatal(err)
				}
				if got := outputOf(t, s.sh(script)); got != strings.TrimSpace(string(want)) {
					t.Errorf("ignored at Open %v, and at Start %v: the tool's %q, os/exec's %q", atOpen, now, got, want)
				}
			}
		}
	})
}

const realTime = syscall.Signal(64)

// ignore makes this process ignore the listed ones of three signals, and no other of them. Notify ends what Ignore has begun; Reset alone does not.
func ignore(list []os.Signal) {
	all := []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, realTime}
	signal.Notify(make(chan os.Signal, 1), all...)
	signal.Reset(all...)
	if len(list) > 0 { // of none signal.Ignore would ignore all
		signal.Ignore(list...)
	}
}
