package sandbox

import (
	"bufio"
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

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _, _, _, _ = offer(programs, "bomb", bomb), offer(programs, "stop", stopItself), offer(programs, "harness of a stopped tool", harnessOfStopped), offer(programs, "flee", flee), offer(programs, "stops", stopsAtFullSpeed)

// stopItself stops, and leaves a process that goes on.
func stopItself([]string) {
	c := exec.Command("/bin/sleep", "1000")
	if c.Start() == nil {
		fmt.Println("started")
	}
	unix.Kill(os.Getpid(), unix.SIGSTOP)
	forever()
}

// forever never returns. A single pause would: Go's runtime sends its threads SIGURG
// to preempt goroutines, and the program would end with status 0 by itself.
func forever() {
	for {
		unix.Pause()
	}
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
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
	kerneltest.Long(t)
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
		r.SetReadDeadline(time.Now().Add(time.Minute))
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
	kerneltest.Long(t)
	for _, w := range allSets[:4] {
		t.Run(w.name, func(t *testing.T) {
			w.chosen(t, allSets)
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without}, func(t *testing.T) {
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
					r.SetReadDeadline(time.Now().Add(time.Minute))
					if _, err := io.Copy(io.Discard, r); err != nil {
						t.Errorf("ESCAPE: a process outlives Wait: %v", err)
					}
				})
			})
		})
	}
}

// bomb forks as flee does, by as many processes as its argument says and twice for each: every
// process has a session of its own and no parent. One that outlives the test ends
// after four minutes, and says so.
//
// All begin at once, when the last of them is there: one at a time, among those that run already, takes a minute. It says that it has started
// when half of them have a child.
func bomb(args []string) {
	bombs, _ := strconv.Atoi(args[0])
	var start, now unix.Timespec
	var begin, begun [2]int
	if err := errors.Join(unix.ClockGettime(unix.CLOCK_MONOTONIC, &start), unix.Pipe(begin[:]), unix.Pipe(begun[:])); err != nil {
		fmt.Println(err)
		return
	}
	over := []byte("a process came to its end by itself\n")
	one := make([]byte, 1)
	for range bombs {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid != 0 {
			continue
		}
		unix.RawSyscall(unix.SYS_CLOSE, uintptr(begin[1]), 0, 0)
		unix.RawSyscall(unix.SYS_READ, uintptr(begin[0]), uintptr(unsafe.Pointer(&one[0])), 1)
		for first := true; pid == 0; {
			unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
			if now.Sec > start.Sec+240 {
				unix.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(&over[0])), uintptr(len(over)))
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			pid, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if first {
				unix.RawSyscall(unix.SYS_WRITE, uintptr(begun[1]), uintptr(unsafe.Pointer(&one[0])), 1)
			}
			if first = false; pid != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
	}
	unix.Close(begin[1])
	if _, err := io.ReadFull(os.NewFile(uintptr(begun[0]), "begun"), make([]byte, bombs)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("started")
	forever()
}

func TestKernelAttackForkBombIsDeadAfterCancel(t *testing.T) {
	kerneltest.Long(t)
	bombs := kerneltest.Amount(t, 50, 50, 200) // processes at any time
	for _, w := range allSets[:4] {
		t.Run(w.name, func(t *testing.T) {
			w.chosen(t, allSets)
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without}, func(t *testing.T) {
					r, out, err := os.Pipe()
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					p := attackPolicy(t, "", w)
					p.Limits.Rlimits.NProc = rlimit.At(uint64(2*bombs+300) + host.Threads(os.Getuid()))
					p.May = append(p.May, policy.BoundResources)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s := attackSandbox(t, p, w)
					model := hostile(t, s, "bomb", fmt.Sprint(bombs))
					c := s.CommandContext(ctx, model.Path)
					c.Args, c.Dir, c.Stdout = model.Args, "/", out
					if err := c.Start(); err != nil {
						t.Fatal(err)
					}
					out.Close()
					if _, err := io.ReadFull(r, make([]byte, len("started\n"))); err != nil {
						t.Fatalf("it did not start: %v", err)
					}
					cancel()
					if err := c.Wait(); !errors.Is(err, context.Canceled) && !strings.Contains(fmt.Sprint(err), "killed") {
						t.Errorf("Wait: %v", err)
					}
					if err := unix.SetNonblock(int(r.Fd()), true); err != nil {
						t.Fatal(err)
					}
					said := make([]byte, 1024)
					if n, err := unix.Read(int(r.Fd()), said); n != 0 || err != nil {
						t.Errorf("ESCAPE: when Wait has returned somebody holds the output: %q, %v", said[:max(n, 0)], err)
					}
				})
			})
		})
	}
}

// stopsAtFullSpeed is stopped and continued by its child, once it has been told to begin.
func stopsAtFullSpeed(args []string) {
	if len(args) > 0 {
		for range 10000 {
			unix.Kill(os.Getppid(), unix.SIGSTOP)
			unix.Kill(os.Getppid(), unix.SIGCONT)
		}
		return
	}
	io.ReadAll(os.Stdin)
	exe, _ := os.Executable()
	c := exec.Command(exe)
	c.Args = []string{attackTool, "stops", "its parent"}
	if err := c.Run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("done")
	os.Exit(7)
}

// A tool that is stopped and continued inside ends as others do: the stage, which stops with it, goes on with it. So does one whose stage
// is stopped by its caller meanwhile.
func TestKernelAttackStopsAtFullSpeed(t *testing.T) {
	kerneltest.Long(t)
	check := func(t *testing.T, command func() *Cmd) {
		c := command()
		if out, err := c.CombinedOutput(); c.ProcessState == nil || c.ProcessState.ExitCode() != 7 {
			t.Errorf("%v: %s", err, out)
		}
		c = command()
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err := errors.Join(err, c.Start(), c.Process.Signal(unix.SIGSTOP)); err != nil {
			t.Fatal(err)
		}
		in.Close()
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "done\n" {
			t.Errorf("%q, %v", line, err)
		}
		c.Process.Signal(unix.SIGCONT)
		if err := c.Wait(); c.ProcessState.ExitCode() != 7 {
			t.Error(err)
		}
	}
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		check(t, func() *Cmd { return hostile(t, s, "stops") })
	})
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, _ walls) {
		check(t, func() *Cmd { return s.program("stops") })
	})
}
