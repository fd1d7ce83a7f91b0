package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "orphan the group", orphanTheGroup)

// orphanTheGroup has a child stop a grandchild in the process group, leave that group, and end. The kernel then sends SIGHUP to the group, if no shell has it
// for a job.
func orphanTheGroup([]string) {
	signal.Ignore(unix.SIGHUP)
	fork := func() uintptr {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		return pid
	}
	var status unix.WaitStatus
	first := fork()
	if first == 0 {
		second := fork()
		if second == 0 {
			for fd := range uintptr(3) { // the harness reads them to their end
				unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
			}
			self, _, _ := unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
			unix.RawSyscall(unix.SYS_KILL, self, uintptr(unix.SIGSTOP), 0)
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		unix.RawSyscall6(unix.SYS_WAIT4, second, pointerTo(&status), unix.WUNTRACED, 0, 0, 0)
		_, _, errno := unix.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	if _, err := unix.Wait4(int(first), &status, 0, nil); err != nil || status != 0 {
		fmt.Println(status, err)
		os.Exit(1)
	}
}

// beside runs f while another process is in the harness's group, and returns how that ended.
func beside(t *testing.T, f func()) error {
	t.Helper()
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	f()
	in.Close()
	return other.Wait()
}

// TestKernelAttackTheHarnesssGroup: the harness is killed by its own process group, which the kernel hangs up for a tool that is in it. The children of these
// tests lead a session, as harnesses of a service manager or a container do.
func TestKernelAttackTheHarnesssGroup(t *testing.T) {
	eachWall(t, append(allSets[:len(allSets):len(allSets)], unscoped...), func(t *testing.T, w walls) {
		signal.Notify(make(chan os.Signal, 1), unix.SIGHUP)
		if err := beside(t, func() { hostileBare(t, "orphan the group").Run() }); err == nil {
			t.Fatal("without a sandbox the group is not hung up, so that this test proves nothing")
		}
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		defer s.Close()
		run := func(how string, c *Cmd) {
			if err := beside(t, func() {
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", how, err, out)
				}
			}); err != nil {
				t.Errorf("ESCAPE: %s: a process of the harness's group: %v", how, err)
			}
		}
		run("a command", hostile(t, s, "orphan the group"))
		run("another command", hostile(t, s, "orphan the group"))
		session, err := s.Open(t.Context())
		if errors.Is(err, errors.ErrUnsupported) {
			return // it needs Landlock
		}
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		run("a session's command", session.program("orphan the group"))
	})
}
