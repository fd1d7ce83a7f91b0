package commandtest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// A keptShell is a shell that a harness keeps, and gives scripts by its standard input.
type keptShell struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func keepShell(t *testing.T, cmd *exec.Cmd) *keptShell {
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &keptShell{T: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

func (s *keptShell) give(script string) {
	s.Helper()
	if _, err := io.WriteString(s.in, script+"\n"); err != nil {
		s.Fatal(err)
	}
}

func (s *keptShell) says(want string) {
	s.Helper()
	if s.out.Scan(); s.out.Text() != want {
		s.Fatalf("it printed %q, want %q", s.out.Text(), want)
	}
}

// end closes the shell's standard input, and expects that it ends with 0 and prints nothing more.
func (s *keptShell) end() {
	s.Helper()
	s.in.Close()
	for s.out.Scan() {
		s.Errorf("at the end it printed %q", s.out.Text())
	}
	if err := s.cmd.Wait(); err != nil {
		s.Error(err)
	}
}

// signalChildren does what `pgrep -P PID` and kill do, once there are children.
func signalChildren(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	for range 6000 {
		out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(out)) {
			child, err := strconv.Atoi(field)
			if err == nil {
				err = syscall.Kill(child, sig)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(out) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the process has no child")
}

// TestKernelSignalsToTheProcesssChildren reach the tool's children, and not the tool, however the command was started: a harness that keeps a shell ends by them what the
// shell runs. What the tool sends the first process inside does nothing.
func TestKernelSignalsToTheProcesssChildren(t *testing.T) {
	kerneltest.Need(t, kerneltest.Command("pgrep"), kerneltest.Command("bash"))
	commands := func(prepared int) func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd {
		return func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd {
			if err := s.Prepare(prepared); err != nil {
				t.Fatal(err)
			}
			return s.Command("bash").Cmd
		}
	}
	single, spared := commands(0), commands(1)
	for _, c := range []struct {
		name    string
		without []kerneltest.Feature
		start   func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd
	}{
		{"os/exec", nil, func(*testing.T, *sandbox.Sandbox) *exec.Cmd { return exec.Command("bash") }},
		{"a command", nil, single},
		{"a command that leads a process group", nil, func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd {
			cmd := single(t, s)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return cmd
		}},
		{"a command that leads a session", nil, func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd {
			cmd := single(t, s)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return cmd
		}},
		{"a command without Landlock", []kerneltest.Feature{kerneltest.Landlock}, single},
		{"a command without a trampoline", []kerneltest.Feature{kerneltest.MemfdExec}, single},
		{"a command without namespaces", []kerneltest.Feature{kerneltest.Namespaces, kerneltest.Mounts}, single},
		{"a command in a prepared sandbox", nil, spared},
		{"a session's command", nil, func(t *testing.T, s *sandbox.Sandbox) *exec.Cmd {
			sess, err := s.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { sess.Close() })
			return sess.Command("bash").Cmd
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: c.without}, func(t *testing.T) {
					p := toolPolicy(openDir(t))
					if err := errors.Join(os.WriteFile("begun", []byte("begun\n"), 0o644), syscall.Mkfifo("fifo", 0o600)); err != nil { // cat, and not a shell before it, prints the one and waits for the other
						t.Fatal(err)
					}
					p.May = []sandbox.Bound{"files", "network", "processes", "syscalls", "privileges"}
					s, err := sandbox.New(p)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					sh := keepShell(t, c.start(t, s))
					pid := sh.cmd.Process.Pid
					sh.give("trap 'echo the shell, too; told=1' HUP INT QUIT USR1 USR2 TERM ABRT ALRM")
					for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
						sh.give(`bash -c 'trap - HUP INT QUIT USR1 USR2 TERM ABRT ALRM; ulimit -c 0; exec cat begun fifo' 2>/dev/null; echo ended $?`)
						sh.says("begun")
						signalChildren(t, pid, sig)
						sh.says("ended " + strconv.Itoa(128+int(sig)))
					}
					if c.name != "os/exec" {
						// From inside, by kill(2) and by sigqueue(3), to whoever is the shell's parent and to the first process.
						sh.give(`bash -c 'trap "echo got USR1" USR1; trap "echo got TERM; exit" TERM; echo begun; while :; do sleep 0.01; done' & sleep 0`)
						sh.says("begun")
						sh.give(`for p in 1 $PPID; do kill -USR1 $p; done 2>/dev/null; echo tried`)
						sh.says("tried")
						signalChildren(t, pid, unix.SIGTERM)
						sh.says("got TERM")
						sh.give("wait; echo waited")
						sh.says("waited")
					}
					sh.give("until [ $told ]; do sleep 0.01; done")
					if err := sh.cmd.Process.Signal(unix.SIGTERM); err != nil {
						t.Fatal(err)
					}
					sh.says("the shell, too")
					sh.end()
				})
			})
		})
	}
}
