package sandbox

import (
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var _ = offer(programs, "leave the group", leaveTheGroup)

// leaveTheGroup starts a process in a session of its own, which holds the output,
// and waits.
func leaveTheGroup([]string) {
	pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 {
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		started := []byte("started\n")
		unix.RawSyscall(unix.SYS_WRITE, 1, pointerTo(&started[0]), uintptr(len(started)))
		for range 60 {
			second := [2]int64{1, 0}
			unix.RawSyscall(unix.SYS_NANOSLEEP, pointerTo(&second), 0, 0)
		}
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	forever()
}

// Harnesses cancel a command by a SIGKILL to its process group. The stage and init
// are in it: what has left the group must die all the same, before Wait returns.
func TestKernelAttackLeavingTheProcessGroup(t *testing.T) {
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		for name, attr := range map[string]*syscall.SysProcAttr{"a group of its own": {Setpgid: true}, "a session of its own": {Setsid: true}} {
			r, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			c := hostile(t, attackSandbox(t, attackPolicy(t, "", w), w), "leave the group")
			c.Stdout, c.SysProcAttr = out, attr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			out.Close()
			if _, err := io.ReadFull(r, make([]byte, len("started\n"))); err != nil {
				t.Fatalf("it did not start: %v", err)
			}
			if err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			c.Wait()
			r.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, r); err != nil {
				t.Errorf("ESCAPE: %s: a process outlives Wait: %v", name, err)
			}
			r.Close()
		}
	})
}
