package commandtest

import (
	"github.com/holdfast-dev/holdfast/internal/kerneltest"

	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// orphan and background mark what a tool of a comparison leaves behind.
var orphan, background = owned("holdfast-orphan"), owned("holdfast-background")

// residue is the argv by which what a tool leaves behind is found. It bears the number of this
// process, so that tests which run at the same time do not find each other's.
var residue = owned("holdfast-residue")

// owned returns a word that no other process that runs these tests uses; a harness that
// runs as another process returns that of its test.
func owned(word string) string {
	pid := os.Getpid()
	if os.Args[0] == harness || os.Args[0] == networkHarness {
		pid = os.Getppid()
	}
	return fmt.Sprint(word, "-", pid)
}

// tree is a tool that starts processes in the background, of its session and of
// sessions of their own, and then does what $1 says.
var tree = `(exec -a ` + residue + ` sleep 1000) & setsid bash -c "exec -a ` + residue + ` sleep 1000" &
(setsid bash -c "(exec -a ` + residue + ` sleep 1000) & exec -a ` + residue + ` sleep 1000" &) &
until [ "$(pgrep -fxc '` + residue + ` 1000')" = 4 ]; do :; done
echo ready; eval "$1"`

const grown = 4 // how many processes of tree bear the name

// ways are how a command can be run to its end; each returns Wait's error, and
// calls running once the tool has said that it is ready.
var ways = map[string]func(c *sandbox.Cmd, running func()) error{
	"Start and Wait": func(c *sandbox.Cmd, running func()) error { return through(c, c.Start, c.Wait, running) },
	"the embedded Start and Wait": func(c *sandbox.Cmd, running func()) error {
		return through(c, c.Cmd.Start, c.Cmd.Wait, running)
	},
	"Run": func(c *sandbox.Cmd, running func()) error {
		c.Stdout = &signalOnWrite{f: running}
		return c.Run()
	},
}

func through(c *sandbox.Cmd, start, wait func() error, running func()) error {
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err == nil { // a deadline may come before
		running()
	}
	return wait()
}

func TestKernelNothingIsLeft(t *testing.T) {
	kerneltest.Long(t)
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		short := toolPolicy(dir)
		short.Limits.WallClock = 300 * time.Millisecond
		deadline, err := sandbox.New(short)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []*sandbox.Sandbox{s, deadline} {
			in.Command("/bin/true").Run() // a Sandbox keeps the record of what its tools have made
		}
		for way, run := range ways {
			for _, c := range []struct {
				name string
				in   *sandbox.Sandbox
				then string // what the tool does once it is ready
				act  func(c *sandbox.Cmd, cancel func())
				ends func(err error) bool
			}{
				{"a tool that ends", s, "exit 0", nil, func(err error) bool { return err == nil }},
				{"a tool that fails", s, "exit 3", nil, func(err error) bool { return code(err) == 3 }},
				{"a tool that closes its output and ends", s, "exec >&- 2>&-; exit 4", nil, func(err error) bool { return code(err) == 4 }},
				{"a tool that kills itself", s, "kill -KILL $$", nil, killed},
				{"a command that is cancelled", s, "wait", func(_ *sandbox.Cmd, cancel func()) { cancel() }, killed},
				{"a process that is killed", s, "wait", func(c *sandbox.Cmd, _ func()) { c.Process.Kill() }, killed},
				{"a stage that is killed by its pid", s, "wait", func(c *sandbox.Cmd, _ func()) { syscall.Kill(c.Process.Pid, syscall.SIGKILL) }, killed},
				{"a stage that is stopped and killed", s, "wait", func(c *sandbox.Cmd, _ func()) {
					c.Process.Signal(syscall.SIGSTOP)
					c.Process.Kill()
				}, killed},
				{"a run that is too long", deadline, "wait", nil, killed},
			} {
				t.Run(c.name+", by "+way, func(t *testing.T) {
					defer killMarked(t, residue)
					before := takeInventory(t)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					cmd := c.in.CommandContext(ctx, "/bin/bash", "-c", tree, "bash", c.then)
					err := run(cmd, func() {
						if c.act != nil {
							if n := len(marked(t, residue)); n != grown {
								t.Errorf("%d processes grew", n)
							}
							c.act(cmd, cancel)
						}
					})
					if alive := marked(t, residue); len(alive) > 0 {
						t.Errorf("alive when Wait returns: %v", alive)
					}
					if !c.ends(err) {
						t.Errorf("Wait: %v", err)
					}
					if isDeadline := errors.Is(err, sandbox.ErrDeadline); isDeadline != (c.in == deadline && !strings.Contains(way, "embedded")) {
						t.Errorf("Wait: %v: is ErrDeadline: %t", err, isDeadline)
					}
					if left := leftOver(t, before); left != "" {
						t.Errorf("left open: %s", left)
					}
				})
			}
		}
	})
}

func code(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

func TestKernelWaitReturnsWhenFiftyDaemonsAreDead(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		defer killMarked(t, residue)
		c := s.Command("/bin/bash", "-c", `for i in $(seq 50); do setsid bash -c "exec -a `+residue+` sleep 1000" </dev/null >/dev/null 2>&1 & done
until [ "$(pgrep -fxc '`+residue+` 1000')" = 50 ]; do :; done; echo all`)
		out, err := c.Output()
		alive := marked(t, residue)
		if err != nil || string(out) != "all\n" {
			t.Fatalf("%q, %v", out, err)
		}
		if len(alive) > 0 {
			t.Errorf("%d daemons are alive when Wait returns", len(alive))
		}
	})
}

func TestKernelStartsThatFailLeaveNothing(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		before := takeInventory(t)
		broken := dir + "/broken"
		if err := os.WriteFile(broken, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			for _, name := range []string{"/nonexistent", broken, "/usr"} {
				c := s.Command(name)
				c.Stdin, c.Stdout = strings.NewReader("x"), new(strings.Builder)
				if err := c.Run(); err == nil {
					t.Errorf("%s ran", name)
				}
				e := s.Command(name).Cmd
				e.Stderr = new(strings.Builder)
				if err := e.Run(); err == nil {
					t.Errorf("%s ran by the embedded Cmd", name)
				}
			}
		}
		if left := leftOver(t, before); left != "" {
			t.Errorf("left open: %s", left)
		}
	})
}

// harness is a program that starts a sandbox with a tree in it and waits.
const harness = "holdfast-test-harness"

func init() {
	kerneltest.Programs[harness] = func() {
		s, err := sandbox.New(toolPolicy(os.Args[1]))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		c := s.Command("/bin/bash", "-c", tree, "bash", "wait")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func TestKernelHarnessThatIsKilledLeavesNothing(t *testing.T) {
	inSandbox(t, func(t *testing.T, _ *sandbox.Sandbox, dir string) {
		defer killMarked(t, residue)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(exe, dir)
		c.Args[0] = harness
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
		inside := marked(t, residue)
		if len(inside) != grown {
			t.Errorf("%d processes grew", len(inside))
		}
		c.Process.Kill()
		c.Wait()
		if !eventually(func() bool { return len(marked(t, residue)) == 0 }) {
			t.Errorf("alive after the harness: %v", marked(t, residue))
		}
	})
}

func TestKernelTwoHundredAtOnce(t *testing.T) {
	kerneltest.Long(t)
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		var all sync.WaitGroup
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			all.Go(func() {
				c := s.Command("/bin/bash", "-c", "read x; echo $0; exit 7", fmt.Sprint(i))
				c.Stdin = read // ends for all at once
				out, err := c.Output()
				if code(err) != 7 || string(out) != fmt.Sprintln(i) {
					t.Errorf("sandbox %d: %q, %v", i, out, err)
				}
			})
		}
		eventually(func() bool { return len(children(t)) == 200 })
		write.Close()
		all.Wait()
		read.Close()
	})
}
