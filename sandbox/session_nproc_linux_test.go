package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// spareThreads has the runtime start threads while it can: a program of Go's that gets none ends.
func spareThreads() {
	const n = 48
	var all, done sync.WaitGroup
	all.Add(n)
	for range n {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		})
	}
	done.Wait()
}

// whileFull calls f while the user can start no process.
func whileFull(t *testing.T, pid int, f func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &before, nil); err != nil {
		t.Fatal(err)
	}
}

// TestKernelTheUsersProcessesAreUsedUp while a process stands ready, or a sandbox is prepared: the next command runs or says why it does
// not, and those that come when there is room again run.
func TestKernelTheUsersProcessesAreUsedUp(t *testing.T) {
	kerneltest.Long(t)
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		if os.Getuid() == 0 {
			return // is not bound by it (setrlimit(2))
		}
		prepared, _ := preparedSandbox(t, "", w)
		spareThreads()
		outputOf(t, s.sh("true"))
		runs := map[string]func() error{
			"of a session":  func() error { return s.sh("true").Run() },
			"of a prepared": func() error { return sh(prepared, "true").Run() },
		}
		init := sessionInit(t, s)
		for name, run := range runs {
			for _, full := range []struct {
				where string
				pid   int
			}{{"in the harness", os.Getpid()}, {"in init", init}} {
				whileFull(t, full.pid, func() {
					if err := exec.Command("/bin/true").Run(); full.pid == os.Getpid() && !errors.Is(err, syscall.EAGAIN) {
						t.Fatalf("a process can be started: %v", err)
					}
					for n := range 4 {
						within(t, fmt.Sprintf("%s, command %d %s", full.where, n, name), func() error {
							if err := run(); err != nil && !errors.Is(err, syscall.EAGAIN) {
								return err
							}
							return nil
						})
					}
				})
				within(t, full.where+", afterwards "+name, run)
			}
		}
	})
}

// sessionInit is the number of a session's first process.
func sessionInit(t *testing.T, s *Session) int {
	k := &killing{}
	k.find(t, s)
	return k.init
}
