package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// levelsBelow returns the first child of the first child ... of a process, n levels down.
func levelsBelow(t *testing.T, pid, n int) int {
	t.Helper()
	for range n {
		list := childrenOf(pid)
		if len(list) == 0 {
			t.Fatalf("process %d has no child", pid)
		}
		pid = list[0]
	}
	return pid
}

// TestKernelASessionEndsWhoseProcessesWereStopped from outside: its stage, init, and without a pid namespace the keeper between them.
func TestKernelASessionEndsWhoseProcessesWereStopped(t *testing.T) {
	kerneltest.Parallel(t) // it waits for seconds
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		levels := 3
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			levels = 2
		}
		of := attackSandbox(t, attackPolicy(t, "", w), w)
		for level := range levels {
			for _, byContext := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				s, err := of.Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.sh("setsid sleep 999 >/dev/null 2>&1 & exit 0").Run(); err != nil {
					t.Fatal(err)
				}
				stage := levelsBelow(t, os.Getpid(), 1)
				fds := outside(t, stage)
				if err := unix.Kill(levelsBelow(t, stage, level), unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				if byContext {
					cancel()
				}
				within(t, fmt.Sprintf("Close, %d levels below the stage", level), func() error { s.Close(); return nil })
				dead(t, fds, 10_000)
				cancel()
			}
		}
	})
}

// TestKernelACommandEndsWhoseStageWasStopped, with its context and its tool's status, when its tool has ended.
func TestKernelACommandEndsWhoseStageWasStopped(t *testing.T) {
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := s.CommandContext(ctx, "/bin/sh", "-c", "sleep 0.2; exit 7")
		c.Dir = "/"
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(c.Process.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		await(t, "the tool's end", func() bool {
			list, err := s.Processes()
			return err == nil && len(list) == 0
		})
		time.Sleep(100 * time.Millisecond) // the harness hears of it
		cancel()
		within(t, "Wait", func() error {
			if err := c.Wait(); err == nil || err.Error() != "exit status 7" {
				return fmt.Errorf("the tool's end: %v", err)
			}
			return nil
		})
	})
}

// TestKernelAStoppedKeeperEndsARun.
func TestKernelAStoppedKeeperEndsARun(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			for _, cancelled := range []bool{true, false} { // in this order: letGo leaves a file
				ctx, cancel := context.WithCancel(t.Context())
				c, fds, ready := startLitter(t, ctx, workspaceHere(t), "while ! [ -e go ]; do sleep 0.01; done")
				if !ready {
					t.Fatalf("the tool was not ready: %v", c.Wait())
				}
				keeper := theChild(t, c.Process.Pid)
				fd, err := unix.PidfdOpen(keeper, 0)
				if err != nil {
					t.Fatal(err)
				}
				if err := unix.Kill(keeper, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				if cancelled {
					cancel()
				} else {
					letGo(t)
				}
				within(t, "the run", func() error {
					if err := c.Wait(); (err != nil) != cancelled {
						return err
					}
					return nil
				})
				dead(t, append(fds, fd), 10_000)
				cancel()
			}
		})
	})
}

// A harness with a session or a single command, which is killed when its stage was stopped.
var _ = offer(programs, "harness of a stopped stage", func(args []string) {
	p := Policy{Files: Files{Read: []string{"/usr", "/bin", "/lib", "/lib64"}, Private: []string{"/tmp"}}}
	for _, b := range strings.Fields(args[0]) {
		p.May = append(p.May, Bound(b))
	}
	s, err := New(p)
	if err != nil {
		panic(err)
	}
	command := s.Command
	if args[1] == "session" {
		n, err := s.Open(context.Background())
		if err != nil {
			panic(err)
		}
		command = n.Command
	}
	c := command("/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo started; exec sleep 2000")
	c.Dir = "/"
	out, err := c.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := c.Start(); err != nil {
		panic(err)
	}
	bufio.NewReader(out).ReadString('\n')
	fmt.Println("started")
	select {}
})

// TestKernelAStoppedStageEndsWithItsHarness: a stage that is stopped does not see its harness die, and its tool would run on.
func TestKernelAStoppedStageEndsWithItsHarness(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		adoptOrphans(t)
		for _, what := range []string{"single", "session"} {
			c, lines := startHarness(t, t.TempDir(), "harness of a stopped stage", strings.Join(boundNames(w.may), " "), what)
			for lines.Scan() && lines.Text() != "started" {
			}
			for _, stage := range childrenOf(c.Process.Pid) {
				if err := unix.Kill(stage, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			c.Process.Kill()
			c.Wait()
			reapAll(t, what)
		}
	})
}

// TestKernelAToolThatIsKilledBeforeItsExecve was killed, as one of os/exec's is, and by no filter.
func TestKernelAToolThatIsKilledBeforeItsExecve(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p := attackPolicy(t, makeGrounds(t, 1), w)
		of := attackSandbox(t, p, w)
		s, err := of.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for name, command := range map[string]func(string, ...string) *Cmd{"single": of.Command, "session": s.Command} {
			for range 2 { // the session's second finds a process that stands ready, perhaps
				tool, waits := leased(t, p.Files.Write[0])
				c := command(tool)
				c.Dir = "/"
				started := make(chan error, 1)
				go func() { started <- c.Start() }()
				await(t, "an execve that waits for the lease", waits)
				tools := 0
				await(t, "the process in its execve", func() bool {
					for _, pid := range descendants(os.Getpid()) {
						if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(name), "/") { // as before its execve
							tools++
							unix.Kill(pid, unix.SIGKILL)
						}
					}
					return tools > 0
				})
				err := <-started
				if err == nil {
					err = c.Wait()
				}
				var x *exec.ExitError
				if !errors.As(err, &x) || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || err.Error() != "signal: killed" {
					t.Errorf("%s: %v", name, err)
				}
				os.Remove(tool)
			}
		}
	})
}

func descendants(pid int) (list []int) {
	for _, c := range childrenOf(pid) {
		list = append(append(list, c), descendants(c)...)
	}
	return list
}

// TestKernelAPreparedCommandIsKilledAsItStarts: its error does not speak of a session, which its caller has not opened.
func TestKernelAPreparedCommandIsKilledAsItStarts(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:1], func(t *testing.T, w walls) {
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		defer s.Close()
		for range kerneltest.Amount(t, 20, 50, 100) {
			if err := s.Prepare(1); err != nil {
				t.Fatal(err)
			}
			before := childrenOf(os.Getpid())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			c := s.CommandContext(ctx, "true")
			c.Dir = "/"
			ended := make(chan error, 1)
			go func() { ended <- c.Run() }()
			for killed := false; !killed; {
				select {
				case err := <-ended: // it was too fast
					ended <- err
					killed = true
				default:
				}
				for _, pid := range childrenOf(os.Getpid()) {
					if len(before) > 0 && pid != before[0] {
						unix.Kill(pid, unix.SIGKILL)
						killed = true
					}
				}
			}
			err := <-ended
			var session *policy.SessionError
			if errors.As(err, &session) { // nil: it came too late
				t.Errorf("killed as it began: %v", err)
			}
			cancel()
		}
	})
}
