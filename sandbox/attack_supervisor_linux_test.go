package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// whileItSleeps starts a tool that says that it runs, and then sleeps; it calls end, and
// returns Wait's error. Nothing of the tool is left then. A run that ends by itself (end
// is nil) may do so before the tool has said anything.
func whileItSleeps(t *testing.T, c *Cmd, end func() error) error {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c.Dir, c.Stdout = "/", w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if end != nil {
		if _, err := io.ReadFull(r, make([]byte, len("started\n"))); err != nil {
			t.Fatalf("it did not start: %v", err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	ended := c.Wait()
	r.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Errorf("ESCAPE: the tool outlives Wait: %v", err)
	}
	return ended
}

// sleeper is a shell's program for whileItSleeps.
const sleeper = "echo started; sleep 1000 & wait"

// onlyChild is the one child of a process.
func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(list)))
	if err != nil {
		t.Fatalf("not one child: %v", err)
	}
	return pid
}

// A supervisor that is killed from outside ends the run, which says so. What the harness
// or the tool ends is told as ever.
func TestKernelKilledSupervisorIsToldOf(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		s := attackSandbox(t, tracedPolicy(t, w), w)
		keeper := func(c *Cmd) int { return onlyChild(t, c.Process.Pid) } // the stage's child, unless that is init
		first := func(c *Cmd) int { return initOf(t, s, c) }
		for _, k := range []struct {
			process string
			pid     func(c *Cmd) int
		}{{"init", first}, {"keeper", keeper}} {
			if k.process == "keeper" && s.ready.Plan.Namespaces.PID {
				continue
			}
			c := s.Command("sh", "-c", sleeper)
			err := whileItSleeps(t, c, func() error { return unix.Kill(k.pid(c), unix.SIGKILL) })
			var lost *ProcessError
			var exit *exec.ExitError
			if !errors.As(err, &lost) || lost.Process != k.process || !errors.As(err, &exit) {
				t.Errorf("%s was killed: Wait returned %v", k.process, err)
			}
			if status := c.Report().Status; !strings.Contains(status, "the sandbox's "+k.process) {
				t.Errorf("%s was killed: the report says %q", k.process, status)
			}
		}
		c := s.Command("sh", "-c", sleeper)
		deadline := tracedPolicy(t, w)
		deadline.Limits.WallClock = 300 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cancelled := s.CommandContext(ctx, "sh", "-c", sleeper)
		itself := s.Command("sh", "-c", "echo started; kill -KILL $$")
		late := attackSandbox(t, deadline, w).Command("sh", "-c", sleeper)
		for _, honest := range []struct {
			name string
			c    *Cmd
			end  func() error
		}{
			{"the harness kills the command", c, func() error { return c.Process.Kill() }},
			{"the harness cancels the context", cancelled, func() error { cancel(); return nil }},
			{"the tool kills itself", itself, nil},
			{"the deadline", late, nil},
		} {
			err := whileItSleeps(t, honest.c, honest.end)
			var lost *ProcessError
			var exit *exec.ExitError
			if errors.As(err, &lost) || !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: Wait returned %v", honest.name, err)
			}
			if exit != nil && exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
				t.Errorf("%s: %v", honest.name, exit)
			}
			if status := honest.c.Report().Status; strings.Contains(status, "the sandbox's") {
				t.Errorf("%s: the report says %q", honest.name, status)
			}
		}
	})
}

var _ = offer(programs, "leave some that make names", leaveMakers)

// leaveMakers leaves processes behind that make names, which the supervisor answers, and print when a call is answered as without one.
func leaveMakers(args []string) {
	name, err := unix.BytePtrFromString(args[0])
	if err != nil {
		panic(err)
	}
	unanswered := []byte("unanswered\n")
	for range 8 {
		if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
			for {
				_, _, errno := unix.RawSyscall6(unix.SYS_MKDIRAT, ^uintptr(99), uintptr(unsafe.Pointer(name)), 0o700, 0, 0, 0)
				if errno == unix.ENOSYS {
					unix.RawSyscall(unix.SYS_WRITE, 1, pointerTo(&unanswered[0]), uintptr(len(unanswered)))
				}
			}
		}
	}
}

// What the tool has left is killed before the supervisor ends: no call of it goes without an answer.
func TestKernelAttackCallsAfterTheToolsEnd(t *testing.T) {
	eachWall(t, allSets[:2], func(t *testing.T, w walls) {
		dir := t.TempDir()
		p := attackPolicy(t, "", w)
		p.Files.Write, p.Files.Protect = []string{dir}, policy.Protect{}
		s := attackSandbox(t, p, w)
		for range 10 {
			out, err := hostile(t, s, "leave some that make names", dir+"/name").CombinedOutput()
			if err != nil || len(out) != 0 {
				t.Fatalf("%v: %.200q", err, out)
			}
		}
	})
}
