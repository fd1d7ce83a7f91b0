package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// litter starts a daemon that is in a session of its own and ignores every
// signal that it can, and a child of that; it writes their numbers to the file
// pids, and says ready.
const litter = `
	setsid sh -c 'trap "" HUP INT TERM QUIT; echo $$ >>pids; sh -c "trap \"\" HUP TERM; echo \$\$ >>pids; touch ready; exec sleep 1000" & wait; sleep 1000' >/dev/null 2>&1 </dev/null &
	until [ -e ready ]; do sleep 0.01; done; echo ready; `

// littered opens a pidfd of each process in the file pids, by its number outside; ok: both live.
func littered(t *testing.T) (fds []int, ok bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "ws", "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		var pid int
		fmt.Sscan(word, &pid)
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Logf("process %d: %v", pid, err)
			continue
		}
		fds = append(fds, fd)
	}
	return fds, len(fds) == 2
}

// dead waits until each process is dead; with 0 ms it only looks.
func dead(t *testing.T, fds []int, ms int) {
	t.Helper()
	for _, fd := range fds {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, ms)
		for err == unix.EINTR {
			n, err = unix.Poll(p, ms)
		}
		if n != 1 || err != nil {
			t.Errorf("a process lives on: %v", err)
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
		unix.Close(fd)
	}
}

// startLitter starts a tool that leaves litter and then runs the script, and returns when the litter
// is there, with a pidfd of each of its processes; without, the tool has ended before.
func startLitter(t *testing.T, ctx context.Context, p Policy, script string) (c *Cmd, fds []int, ready bool) {
	t.Helper()
	ws := filepath.Join(os.Getenv("HOME"), "ws")
	for _, name := range []string{"pids", "ready"} { // of a tool before
		if err := os.Remove(filepath.Join(ws, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	c = s.CommandContext(ctx, "/bin/sh", "-c", litter+script)
	c.Dir = ws
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return c, nil, false
	}
	fds, ready = littered(t)
	return c, fds, ready
}

// TestKernelNothingOutlivesARunWithoutNamespaces: when Wait returns everything
// is dead, however the run ended.
func TestKernelNothingOutlivesARunWithoutNamespaces(t *testing.T) {
	kerneltest.Parallel(t) // it waits for a deadline
	kerneltest.Long(t)
	tests := []struct {
		name   string
		script string
		end    func(t *testing.T, c *Cmd, cancel func())
		limit  time.Duration
		want   string
	}{
		{"the tool ends", "until [ -e go ]; do sleep 0.01; done; exit 4", func(t *testing.T, _ *Cmd, _ func()) { letGo(t) }, 0, "exit status 4"},
		{"the command is cancelled", "sleep 1000", func(_ *testing.T, _ *Cmd, cancel func()) { cancel() }, 0, "signal: killed"},
		{"the stage is killed", "sleep 1000", func(_ *testing.T, c *Cmd, _ func()) { c.Process.Kill() }, 0, "signal: killed"},
		{"init is killed from outside", "sleep 1000", killInitOf, 0, "signal: killed"},
		{"the keeper is killed from outside", "sleep 1000", killKeeperOf, 0, "signal: killed"},
		{"init is stopped from outside and the command cancelled", "sleep 1000", func(t *testing.T, c *Cmd, cancel func()) {
			signalInitOf(t, c, unix.SIGSTOP)
			cancel()
		}, 0, "signal: killed"},
		{"the tool gets a signal", "exec sleep 1000", func(_ *testing.T, c *Cmd, _ func()) { c.Process.Signal(unix.SIGTERM) }, 0, "signal: terminated"},
		{"the deadline passes", "sleep 1000", func(*testing.T, *Cmd, func()) {}, time.Second, ErrDeadline.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					p := workspaceHere(t)
					p.Limits.WallClock = test.limit
					c, fds, ready := startLitter(t, ctx, p, test.script)
					for !ready && p.Limits.WallClock > 0 && p.Limits.WallClock < time.Minute { // on a slow machine
						c.Wait()
						dead(t, fds, 0)
						p.Limits.WallClock *= 4
						c, fds, ready = startLitter(t, ctx, p, test.script)
					}
					if !ready {
						t.Fatalf("the tool was not ready: %v", c.Wait())
					}
					test.end(t, c, cancel)
					err := c.Wait()
					if err == nil || !strings.Contains(err.Error(), test.want) {
						t.Errorf("Wait: %v, want %q", err, test.want)
					}
					dead(t, fds, 0)
				})
			})
		})
	}
}

func killInitOf(t *testing.T, c *Cmd, _ func()) { signalInitOf(t, c, unix.SIGKILL) }

func killKeeperOf(t *testing.T, c *Cmd, _ func()) {
	if err := unix.Kill(theChild(t, c.Process.Pid), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// signalInitOf signals the sandbox's first process, which is the keeper's child, and
// that is the stage's.
func signalInitOf(t *testing.T, c *Cmd, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(theChild(t, theChild(t, c.Process.Pid)), sig); err != nil {
		t.Fatal(err)
	}
}

func theChild(t *testing.T, pid int) int {
	t.Helper()
	list := childrenOf(pid)
	if len(list) != 1 {
		t.Fatalf("process %d has the children %v", pid, list)
	}
	return list[0]
}

// letGo makes the file that a script waits for.
func letGo(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(os.Getenv("HOME"), "ws", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestKernelNothingOutlivesTheHarness kills the harness itself, alone and with its process group, in which the stage is: then the keeper is what is left.
func TestKernelNothingOutlivesTheHarness(t *testing.T) {
	kerneltest.Long(t)
	for _, h := range []struct {
		name    string
		without []kerneltest.Feature
		group   bool
	}{
		{"without namespaces", []kerneltest.Feature{kerneltest.Namespaces}, false},
		{"its group, without namespaces", []kerneltest.Feature{kerneltest.Namespaces}, true},
		{"its group, without namespaces, the stage in a Go runtime", []kerneltest.Feature{kerneltest.Namespaces, kerneltest.MemfdExec}, true},
		{"with namespaces", nil, false},
		{"its group, with namespaces", nil, true},
	} {
		t.Run(h.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: h.without}, func(t *testing.T) {
					workspaceHere(t)
					exe, err := os.Executable()
					if err != nil {
						t.Fatal(err)
					}
					harness := exec.Command(exe, "-test.run=^$")
					harness.Env = append(os.Environ(), litterEnv+"=1")
					harness.Stderr = os.Stderr
					harness.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					out, err := harness.StdoutPipe()
					if err != nil {
						t.Fatal(err)
					}
					if err := harness.Start(); err != nil {
						t.Fatal(err)
					}
					lines := bufio.NewReader(out)
					if line, err := lines.ReadString('\n'); line != "started\n" {
						t.Fatalf("the harness said %q, %v", line, err)
					}
					home, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "ws", "home"))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := os.Lstat(string(home)); h.without != nil && err != nil { // with namespaces it is gone with them
						t.Errorf("HOME is not there while the tool runs: %v", err)
					}
					fds := outside(t, harness.Process.Pid)
					pid := harness.Process.Pid
					if h.group {
						pid = -pid
					}
					if err := unix.Kill(pid, unix.SIGKILL); err != nil {
						t.Fatal(err)
					}
					if err := harness.Wait(); err == nil {
						t.Error("the harness was not killed")
					}
					dead(t, fds, 10_000)
					if _, err := os.Lstat(string(home)); h.without != nil && !errors.Is(err, os.ErrNotExist) {
						t.Errorf("HOME was not removed: %v", err)
					}
				})
			})
		})
	}
}

// TestKernelTheStageAndTheKeeperAreKilledAtOnce, as the kernel kills both when memory is short. The tool's execve waits for a lease on its file
// meanwhile, and init waits for the execve. Cancelling the command then kills every process of the run before the lease ends.
func TestKernelTheStageAndTheKeeperAreKilledAtOnce(t *testing.T) {
	kerneltest.Parallel(t) // it waits for a second
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			p := workspaceHere(t)
			p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			tool, waits := leased(t, filepath.Join(os.Getenv("HOME"), "ws"))
			ctx, cancel := context.WithCancel(t.Context())
			c := s.CommandContext(ctx, tool)
			c.Dir = filepath.Dir(tool)
			started := make(chan error, 1)
			go func() { started <- c.Start() }()
			await(t, "an execve that waits for the lease", waits)
			keeper := theChild(t, theChild(t, os.Getpid()))
			fds := outside(t, os.Getpid())
			for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} { // else the one would end init when it misses the other
				for _, pid := range []int{keeper, theChild(t, os.Getpid())} {
					if err := unix.Kill(pid, sig); err != nil {
						t.Fatal(err)
					}
				}
			}
			cancel()
			within(t, "the run", func() error {
				err := <-started
				if err == nil { // as of any command whose process is killed on its way
					err = c.Wait()
				}
				if err == nil {
					return errors.New("the tool ran to its end")
				}
				locks, err := os.ReadFile("/proc/locks")
				if err == nil && !regexp.MustCompile(fmt.Sprintf(`LEASE +BREAKING +\S+ +%d `, os.Getpid())).Match(locks) {
					return errors.New("it waited until the kernel broke the lease")
				}
				return err
			})
			dead(t, fds, 10_000)
		})
	})
}

// outside opens a pidfd of each descendant of a process.
func outside(t *testing.T, pid int) []int {
	t.Helper()
	var fds []int
	for _, child := range childrenOf(pid) {
		fd, err := unix.PidfdOpen(child, 0)
		if err == nil {
			fds = append(fds, fd)
		}
		fds = append(fds, outside(t, child)...)
	}
	return fds
}

func childrenOf(pid int) []int {
	var list []int
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// litterEnv makes this program a harness that starts litter and waits to be
// killed.
const litterEnv = "HOLDFAST_TEST_LITTER"

func init() {
	if os.Getenv(litterEnv) == "" {
		return
	}
	if err := litterAndWait(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func litterAndWait() error {
	dir := filepath.Join(os.Getenv("HOME"), "ws")
	p := Workspace(dir)
	p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
	s, err := New(p)
	if err != nil {
		return err
	}
	const manyLevels = "printf %s \"$HOME\" >home; mkdir -p $HOME/$(printf '%0.0sd/' $(seq 200)) && "
	c := s.Command("/bin/sh", "-c", manyLevels+litter+"sleep 1000")
	c.Dir = dir
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		return errors.Join(fmt.Errorf("the tool said %q", line), err)
	}
	fmt.Println("started")
	return c.Wait()
}
