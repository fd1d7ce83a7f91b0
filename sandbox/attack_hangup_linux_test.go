package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "orphan the group", orphanTheGroup), offer(programs, "orphan another group", orphanAnother)

// orphanTheGroup has a child stop a grandchild in the process group, leave that group, and end. The kernel then sends SIGHUP to the group, if no shell has it
// for a job. With the number of another group of the session the child enters that before, and leaves it by its end.
func orphanTheGroup(args []string) {
	group := 0
	if len(args) > 0 {
		group, _ = strconv.Atoi(args[0])
	}
	signal.Ignore(unix.SIGHUP)
	fork := func() uintptr {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		return pid
	}
	var status unix.WaitStatus
	first := fork()
	if first == 0 {
		if group != 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETPGID, 0, uintptr(group), 0); errno != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
			}
		}
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
		errno := unix.Errno(0)
		if group == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETPGID, 0, 0, 0)
		}
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	if _, err := unix.Wait4(int(first), &status, 0, nil); err != nil || status != 0 {
		fmt.Println(status, err)
		os.Exit(1)
	}
}

// orphanAnother leaves a stopped process in another group of the session, which becomes orphaned when the sandbox's init is killed.
func orphanAnother(args []string) {
	orphanTheGroup(args)
	fmt.Println("ready")
	os.Stdin.Read(make([]byte, 1))
}

// killItsGroup kills a command as harnesses do that give it a process group.
func killItsGroup(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 100)) // it is ready, or cannot enter the group
	unix.Kill(-c.Process.Pid, unix.SIGKILL)
	c.Wait()
	in.Close()
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
		if err := beside(t, func() { killItsGroup(t, hostileBare(t, "orphan another group", strconv.Itoa(unix.Getpgrp()))) }); err == nil {
			t.Fatal("without a sandbox another group is not hung up, so that this test proves nothing")
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
		if err := beside(t, func() { killItsGroup(t, hostile(t, s, "orphan another group", strconv.Itoa(unix.Getpgrp())).Cmd) }); err != nil {
			t.Errorf("ESCAPE: a command whose group is killed: a process of the harness's group: %v", err)
		}
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

// TestKernelASignalToTheCommandsGroup reaches the tool and what it has started, once each.
func TestKernelASignalToTheCommandsGroup(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		const each = `trap 'echo "$0"' USR1; trap 'exit 0' USR2; echo ready; while :; do read -r line; done`
		c := attackSandbox(t, attackPolicy(t, "", w), w).Command("/bin/sh", "-c", "sh -c \"$1\" child <&3 & exec sh -c \"$1\" parent <&3", "sh", each)
		c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Setpgid: true}
		waits, in, err1 := os.Pipe()
		out, err2 := c.StdoutPipe()
		c.ExtraFiles = []*os.File{waits}
		if err := errors.Join(err1, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		said := bufio.NewReader(out)
		next := func() string { line, _ := said.ReadString('\n'); return strings.TrimSpace(line) }
		if a, b := next(), next(); a != "ready" || b != "ready" {
			t.Fatal(a, b)
		}
		unix.Kill(-c.Process.Pid, unix.SIGUSR1)
		got := []string{next(), next()}
		if slices.Sort(got); !slices.Equal(got, []string{"child", "parent"}) {
			t.Errorf("got %q", got)
		}
		unix.Kill(-c.Process.Pid, unix.SIGUSR2)
		if rest, _ := io.ReadAll(said); len(rest) > 0 {
			t.Errorf("and then %q", rest)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
}
