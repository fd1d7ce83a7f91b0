package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// detain has this thread hold a process at its end, as the kernel holds one that waits for a file server, until free is called: PTRACE_EVENT_EXIT comes before the
// process is a zombie.
func detain(t *testing.T, pid int) (free func()) {
	t.Helper()
	runtime.LockOSThread()
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, unix.PTRACE_O_TRACEEXIT, 0, 0); errno != 0 {
		t.Skipf("needs to trace a process that is not dumpable: %v", errno)
	}
	return func() {
		var status unix.WaitStatus
		unix.Wait4(pid, &status, unix.WALL, nil)
		unix.PtraceDetach(pid)
		runtime.UnlockOSThread()
	}
}

// TestKernelACommandOfASessionIsStuck: its warden was killed and does not end. Wait, and a Cancel of what a tool has left, say so after half a minute.
func TestKernelACommandOfASessionIsStuck(t *testing.T) {
	kerneltest.Parallel(t) // it waits for a minute
	kerneltest.Heavy(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		s, err := attackSandbox(t, attackPolicy(t, "", w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, script := range []string{"exec sleep 999", "sleep 999 >/dev/null 2>&1 & exit 0"} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := s.CommandContext(ctx, "/bin/sh", "-c", script)
			c.Dir = "/"
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			list := awaitProcesses(t, s, 1, "sleep")
			if len(list) != 1 {
				t.Fatal(list)
			}
			end := func() error { cancel(); return c.Wait() }
			if script != "exec sleep 999" {
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
				end = c.Cancel
			}
			warden := parentOf(t, list[0].Outside)
			free := detain(t, warden)
			within(t, script, func() error {
				began := time.Now()
				if stuck := (*StuckError)(nil); !errors.As(end(), &stuck) || stuck.PID != warden {
					return fmt.Errorf("no StuckError of process %d after %v: %v", warden, time.Since(began), stuck)
				}
				return nil
			})
			free()
			awaitNone(t, s)
		}
	})
}

// TestKernelASessionThatDoesNotEndIsStuck: its init does not end, since the kernel holds it up. Close says so after half a minute.
func TestKernelASessionThatDoesNotEndIsStuck(t *testing.T) {
	kerneltest.Parallel(t) // it waits for half a minute
	kerneltest.Heavy(t)
	inSession(t, func(t *testing.T, s *Session) {
		if err := s.sh("sleep 999 & exit 0").Run(); err != nil {
			t.Fatal(err)
		}
		list := awaitProcesses(t, s, 1, "sleep")
		if len(list) != 1 {
			t.Fatal(list)
		}
		init := parentOf(t, parentOf(t, list[0].Outside))
		free := detain(t, init)
		within(t, "Close", func() error {
			if stuck := (*StuckError)(nil); !errors.As(s.Close(), &stuck) || stuck.PID != init {
				return fmt.Errorf("no StuckError of process %d: %v", init, stuck)
			}
			return nil
		})
		free()
		if err := s.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("when it has ended: %v", err)
		}
	})
}
