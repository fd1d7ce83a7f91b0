package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "hold up", holdUp)

// holdUp has its parent sleep where no signal ends it: in an open of a FIFO whose lock a thread holds that waits in splice(2). That parent is the supervisor, or,
// with "parent", another process of the tool's.
func holdUp(args []string) {
	time.AfterFunc(2*time.Minute, func() { os.Exit(0) })
	unix.Mkfifo("fifo", 0o644)
	if args[0] == "parent" {
		r, w, _ := os.Pipe()
		c := exec.Command("/proc/self/exe")
		c.Args, c.Stdout, c.Stderr, c.ExtraFiles = []string{attackTool, "hold up", "child"}, os.Stdout, os.Stdout, []*os.File{w}
		fmt.Println(c.Start())
		r.Read(make([]byte, 1))
		unix.Open("fifo", unix.O_RDONLY|unix.O_NONBLOCK, 0) // which the supervisor is not asked for
		fmt.Println("not held")
	}
	fifo, err := unix.Open("fifo", unix.O_RDWR, 0)
	fmt.Println(err)
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		_, err := unix.Splice(socketEnds()[0], nil, fifo, nil, 1, 0)
		fmt.Println("not held:", err)
	}()
	for dir := fmt.Sprintf("/proc/self/task/%d", <-thread); ; {
		if now, _ := os.ReadFile(dir + "/syscall"); strings.HasPrefix(string(now), fmt.Sprint(unix.SYS_SPLICE, " ")) && stateIn(dir) == 'S' {
			break
		}
	}
	if args[0] == "child" {
		os.NewFile(3, "").Write([]byte("x"))
	} else {
		go func() {
			unix.Open("fifo", unix.O_WRONLY|unix.O_NONBLOCK, 0)
			fmt.Println("not held")
		}()
	}
	for asleep := 0; asleep < 50; time.Sleep(time.Millisecond) { // for a disk it is not that long
		if asleep++; stateIn(fmt.Sprint("/proc/", os.Getppid())) != 'D' {
			asleep = 0
		}
	}
	fmt.Println("held")
	select {}
}

// stateIn returns the state of a process or thread (proc_pid_stat(5)).
func stateIn(dir string) byte {
	text, _ := os.ReadFile(dir + "/stat")
	_, state, _ := strings.Cut(string(text), ") ")
	return (state + " ")[0]
}

// A hungRun is a run whose tool holds something up, unless it has ended before. A read of all ends with the last of its processes.
type hungRun struct {
	c    *Cmd
	all  *os.File
	held bool
	err  error // Wait's
}

// hold starts a command that holds something up, in a directory of its policy.
func hold(t *testing.T, c *Cmd, what string) hungRun {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	c.Args, c.Stdout, c.Stderr = []string{attackTool, "hold up", what}, w, w
	if c.Dir, err = os.MkdirTemp(filepath.Join(os.Getenv("HOME"), "ws"), ""); err != nil {
		t.Fatal(err)
	}
	err = c.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for b := make([]byte, 1); !strings.HasSuffix(said, "held\n"); said += string(b) {
		if _, err := r.Read(b); err != nil {
			t.Logf("%v: %s", err, said)
			return hungRun{c: c, all: r}
		}
	}
	if strings.HasSuffix(said, "not held\n") {
		t.Skip("in this kernel splice(2) does not hold a pipe's lock while it waits")
	}
	return hungRun{c: c, all: r, held: true}
}

// hungPolicy is one under which this program, exe, can hang, on any host.
func hungPolicy(t *testing.T) (p Policy, exe string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p = workspaceHere(t)
	p.May, p.Files.Read = []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, append(p.Files.Read, exe)
	return p, exe
}

// TestKernelARunEndsWhoseProcessesHang: a supervisor, or a process of the tool's, sleeps for a lock that a process below it holds, and is killed. The filter that refuses
// splice is left out.
func TestKernelARunEndsWhoseProcessesHang(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		if w.bare() {
			kerneltest.Heavy(t)
		}
		p, exe := hungPolicy(t)
		s := attackSandbox(t, p, walls{drop: plan.Seccomp})
		n, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var held []hungRun
		for _, command := range []func(context.Context, string, ...string) *Cmd{s.CommandContext, n.CommandContext} {
			for _, what := range []string{"parent", "supervisor"} { // in this order: a supervisor that hangs has the turn of the session (takeTurn)
				held = append(held, hold(t, command(ctx, exe), what))
			}
		}
		for in := time.Second / 4; ; in *= 2 {
			p.Limits.WallClock = in
			timed := hold(t, attackSandbox(t, p, walls{drop: plan.Seccomp}).Command(exe), "supervisor")
			if timed.held || in > time.Minute {
				held = append(held, timed)
				break
			}
			timed.c.Wait()
		}
		cancel()
		for i, r := range held {
			if !r.held {
				t.Fatal("a run has ended before")
			}
			r.hasEnded(t)
			if i == len(held)-1 && !errors.Is(r.err, ErrDeadline) {
				t.Error(r.err)
			}
		}
	})
}

// TestKernelARunEndsWhoseStageHasEnded and whose context has not: its process is killed, or its deadline has passed. The supervisor hangs, as above.
func TestKernelARunEndsWhoseStageHasEnded(t *testing.T) {
	kerneltest.Parallel(t) // it waits for seconds
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		if w.bare() {
			kerneltest.Heavy(t)
		}
		p, exe := hungPolicy(t)
		for _, inSession := range []bool{false, true} {
			start := func() hungRun {
				s := attackSandbox(t, p, walls{drop: plan.Seccomp})
				if !inSession {
					return hold(t, s.Command(exe), "supervisor")
				}
				n, err := s.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { n.Close() })
				return hold(t, n.Command(exe), "supervisor")
			}
			ends := func(what string, r hungRun, want error) {
				within(t, fmt.Sprint(what, ", in a session: ", inSession), func() error {
					if r.hasEnded(t); r.err == nil || want != nil && !errors.Is(r.err, want) {
						return fmt.Errorf("Wait: %w", r.err)
					}
					return nil
				})
			}
			p.Limits.WallClock = 0
			killed := start()
			if !killed.held {
				t.Fatal("the run has ended before")
			}
			killed.c.Process.Kill()
			ends("a process that is killed", killed, nil)
			for p.Limits.WallClock = time.Second / 4; p.Limits.WallClock < time.Minute; p.Limits.WallClock *= 2 {
				if timed := start(); timed.held {
					ends("a deadline", timed, ErrDeadline)
					break
				} else if err := timed.c.Wait(); err == nil {
					t.Error("the tool ran to its end")
				}
			}
		}
	})
}

// hasEnded waits for a run's end, and fails the test unless all processes have ended.
func (r *hungRun) hasEnded(t *testing.T) {
	t.Helper()
	r.err = r.c.Wait()
	if stuck := (*StuckError)(nil); errors.As(r.err, &stuck) {
		t.Error(r.err)
	}
	r.all.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadAll(r.all); err != nil {
		t.Error("a process is left:", err)
	}
}
