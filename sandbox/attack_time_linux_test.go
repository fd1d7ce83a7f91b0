package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _, _ = offer(programs, "stop", stopItself), offer(programs, "harness of a stopped tool", harnessOfStopped), offer(programs, "flee", flee)

// stopItself stops, and leaves a process that goes on.
func stopItself([]string) {
	c := exec.Command("/bin/sleep", "1000")
	if c.Start() == nil {
		fmt.Println("started")
	}
	unix.Kill(os.Getpid(), unix.SIGSTOP)
	unix.Pause()
}

// harnessOfStopped runs a tool that stops, and waits for it for ever.
func harnessOfStopped(args []string) {
	w := walls{}
	for _, s := range allSets {
		if s.name == args[0] {
			w = s
		}
	}
	t := new(testing.T)
	s, err := New(attackPolicy(t, "", w))
	if err != nil {
		fmt.Println(err)
		return
	}
	c := hostile(t, s, "stop")
	c.Stdout = os.Stdout
	fmt.Println(c.Run())
}

// A tool that stops takes the stage with it, for job control's sake, and
// neither the deadline nor the harness's death must wait for it.
func TestKernelAttackStoppingDoesNotStopTheDeadline(t *testing.T) {
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		p.Limits.WallClock = 300 * time.Millisecond
		s := attackSandbox(t, p, w)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		model := hostile(t, s, "stop")
		c := s.CommandContext(ctx, model.Path)
		c.Args, c.Dir, c.Stdout = model.Args, "/", io.Discard
		if err := c.Run(); !errors.Is(err, ErrDeadline) {
			t.Errorf("ESCAPE: the run did not end at its deadline: %v", err)
		}
	})
}

func TestKernelAttackStoppingDoesNotOutliveTheHarness(t *testing.T) {
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(exe)
		c.Args = []string{attackTool, "harness of a stopped tool", w.name}
		c.Stdout, c.SysProcAttr = out, &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		out.Close()
		if n, err := r.Read(make([]byte, 8)); n != 8 {
			t.Fatalf("the tool did not start: %v", err)
		}
		// The tool stops itself next; when it has cannot be seen from here, and
		// whether it has must not matter.
		time.Sleep(100 * time.Millisecond)
		c.Process.Kill()
		c.Wait()
		r.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("ESCAPE: the sandbox outlives its harness: %v", err)
		}
	})
}

// flee leaves processes that are never there when they are looked for: each
// forks and ends at once, and its child does the same.
func flee([]string) {
	fmt.Println("started")
	for range 8 {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		for pid == 0 {
			unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			pid, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
	}
}

func TestKernelAttackFleeingProcessesAreCaught(t *testing.T) {
	for _, w := range allSets[:4] {
		t.Run(w.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without, Timeout: 30 * time.Second}, func(t *testing.T) {
					r, out, err := os.Pipe()
					if err != nil {
						t.Fatal(err)
					}
					c := hostile(t, attackSandbox(t, attackPolicy(t, "", w), w), "flee")
					c.Stdout = out
					if err := c.Run(); err != nil {
						t.Error(err)
					}
					out.Close()
					// When Wait has returned nobody holds the other end any more.
					r.SetReadDeadline(time.Now().Add(5 * time.Second))
					if _, err := io.Copy(io.Discard, r); err != nil {
						t.Errorf("ESCAPE: a process outlives Wait: %v", err)
					}
				})
			})
		})
	}
}
