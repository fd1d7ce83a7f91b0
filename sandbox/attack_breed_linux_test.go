package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"golang.org/x/sys/unix"
)

// A tool each of whose processes makes others, in sessions of their own, up to their limit.
var _ = offer(programs, "breed", func([]string) {
	runtime.LockOSThread()
	for {
		if pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); errno == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		}
	}
})

// TestKernelAttackABreedAtItsLimit: each process that is killed makes room for another, and what kills has one turn of the processor in a hundred.
func TestKernelAttackABreedAtItsLimit(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	w := allSets[3]
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary, Without: w.without}, func(t *testing.T) { // the limit is not for root
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, "", w)
		p.Limits.Rlimits.NProc = rlimit.At(150)
		n, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		p.Limits.WallClock = 300 * time.Millisecond
		timed := attackSandbox(t, p, w)
		for name, command := range map[string]func(context.Context, string, ...string) *Cmd{"a single command at its deadline": timed.CommandContext, "a session's that is cancelled": n.CommandContext} {
			ctx := t.Context()
			if name != "a single command at its deadline" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			c := command(ctx, exe)
			c.Args, c.Dir = []string{attackTool, "breed"}, "/"
			within(t, name, func() error {
				var x *exec.ExitError
				var stuck *StuckError
				if err := c.Run(); !errors.As(err, &x) || errors.As(err, &stuck) {
					return errors.Join(errors.New("it was not killed"), err)
				}
				return nil
			})
		}
	})
}
