package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "session server", func(args []string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err == nil {
		err = os.WriteFile(os.TempDir()+"/address.new", []byte(l.Addr().String()), 0o600)
	}
	if err == nil {
		err = os.Rename(os.TempDir()+"/address.new", os.TempDir()+"/address")
	}
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			io.WriteString(c, "served")
			c.Close()
		}
	}
	println(err.Error())
	os.Exit(1)
})

var _ = offer(programs, "session client", func([]string) {
	for {
		address, err := os.ReadFile(os.TempDir() + "/address")
		if errors.Is(err, os.ErrNotExist) {
			time.Sleep(time.Millisecond)
			continue
		}
		c, err := net.Dial("tcp4", string(address))
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		io.Copy(os.Stdout, c)
		return
	}
})

// abstractNumber is the key of a message queue, and of a socket without a file.
const abstractNumber = 0x686f6c64

var _ = offer(programs, "session queue", func(args []string) {
	flags := 0
	if args[0] == "make" {
		flags = unix.IPC_CREAT | unix.IPC_EXCL | 0o600
	}
	if _, _, errno := unix.Syscall(unix.SYS_MSGGET, abstractNumber, uintptr(flags), 0); errno != 0 {
		println(errno.Error())
		os.Exit(1)
	}
	io.WriteString(os.Stdout, "queue")
})

// sessionWalls are the sets of walls in which there are sessions.
var sessionWalls = []walls{{name: allWalls}, allSets[3], {name: noProfile, noCalls: true}, sharedPIDs, noPivotRoot}

// inSession runs a test in a session as root and as an ordinary user, with namespaces and, where there is time, without.
func inSession(t *testing.T, body func(t *testing.T, s *Session)) {
	t.Helper()
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, _ walls) { body(t, s) })
}

func inSessions(t *testing.T, sets []walls, body func(t *testing.T, s *Session, w walls)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sets, func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		s, err := attackSandbox(t, attackPolicy(t, "", w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s, w)
	})
}

// bare reports whether namespaces are among what is taken away.
func (w walls) bare() bool { return slices.Contains(w.without, kerneltest.Namespaces) }

func (s *Session) sh(script string) *Cmd {
	c := s.Command("/bin/sh", "-c", script)
	c.Dir = "/"
	return c
}

func (s *Session) program(args ...string) *Cmd {
	exe, _ := os.Executable()
	c := s.Command(exe)
	c.Args, c.Dir = append([]string{attackTool}, args...), "/"
	return c
}

// outputOf fails the test unless the command succeeds.
func outputOf(t *testing.T, c *Cmd) string {
	t.Helper()
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v: %v %s", c.Args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// sharing is what one command of a session does, and what another one then sees.
type sharing struct {
	name         string
	before, then *Cmd
	want         string
}

// TestKernelCommandsOfASessionShare what is the sandbox's, and no more than that.
func TestKernelCommandsOfASessionShare(t *testing.T) {
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		sh, program := s.sh, s.program
		first := sh("echo $$ > ${TMPDIR:-/tmp}/first; exec sleep 1000")
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		tests := []sharing{
			{"temporary files", sh("echo kept > ${TMPDIR:-/tmp}/file"), sh("cat ${TMPDIR:-/tmp}/file"), "kept"},
			{"processes", nil, sh("while ! [ -s ${TMPDIR:-/tmp}/first ]; do :; done; p=$(cat ${TMPDIR:-/tmp}/first); while [ \"$(head -c 7 /proc/$p/cmdline)\" = /bin/sh ]; do :; done; kill -0 $p && tr -d '\\0' </proc/$p/cmdline"), "sleep1000"}, // it writes its number before it executes sleep
			{"and not variables", sh("export ONLY=first"), sh("echo ${ONLY-none}"), "none"},
			{"and not the umask", sh("umask 077"), sh("umask"), umask()},
			{"and not the directory", sh("cd /usr"), sh("pwd"), "/"},
			{"and not limits", sh("ulimit -n 17"), sh("[ $(ulimit -n) != 17 ] && echo own"), "own"},
			{"and not descriptors", sh("exec 9</etc/passwd"), sh("ls /proc/self/fd | tr -d '\\n'"), "0123"},
			{"and not the session of a terminal", nil, sh("[ $(cut -d ' ' -f 6 /proc/$$/stat) = $$ ] && echo own"), "own"},
		}
		if w.bare() {
			tests = append(tests,
				sharing{"HOME", sh("echo kept > $HOME/file"), sh("cat ~/file; echo $(ls -A ~)"), "kept\nfile tmp"},
				sharing{"and not the machine's temporary files", nil, sh("echo lost > /tmp/file || echo refused"), "refused"})
		} else {
			server := program("session server")
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			tests = append(tests,
				sharing{"shared memory", sh("echo kept > /dev/shm/file"), sh("cat /dev/shm/file"), "kept"},
				sharing{"message queues", program("session queue", "make"), program("session queue", "find"), "queue"},
				sharing{"loopback", nil, program("session client"), "served"})
		}
		for _, test := range tests {
			if test.before != nil {
				outputOf(t, test.before)
			}
			if got := outputOf(t, test.then); got != test.want {
				t.Errorf("%s: %q, not %q", test.name, got, test.want)
			}
		}
		outputOf(t, sh("kill $(cat ${TMPDIR:-/tmp}/first)"))
		if err := first.Wait(); endedBy(err) != syscall.SIGTERM {
			t.Errorf("a command that another has ended: %v", err)
		}
	})
}

func umask() string {
	out, _ := exec.Command("/bin/sh", "-c", "umask").Output()
	return strings.TrimSpace(string(out))
}

func endedBy(err error) syscall.Signal {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Sys().(syscall.WaitStatus).Signal()
	}
	return -1
}

// TestKernelACommandOfASessionIsAnExecCmd: what a harness sets and reads is as with os/exec.
func TestKernelACommandOfASessionIsAnExecCmd(t *testing.T) {
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, here walls) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c := s.sh("read line; echo \"$line $VALUE\" >&5; [ ! -e /proc/self/fd/3 ] || exit 4; [ -e /proc/self/fd/5 ] || exit 5; exit 7")
		c.Stdin, c.ExtraFiles, c.Env = strings.NewReader("input\n"), []*os.File{nil, nil, w}, []string{"VALUE=own"}
		err = c.Run()
		w.Close()
		if c.ProcessState.ExitCode() != 7 {
			t.Errorf("%v", err)
		}
		if out, _ := io.ReadAll(r); string(out) != "input own\n" {
			t.Errorf("%q", out)
		}
		if r := c.Report(); r.Held() == here.bare() || !strings.Contains(r.String(), "landlock scope (signalling a process outside of the session was refused)") {
			t.Errorf("%v", r)
		}
		plain := exec.Command("/bin/sh", "-c", "cat ${TMPDIR:-/tmp}/wrapped")
		plain.Dir = "/"
		outputOf(t, s.sh("echo in the session >${TMPDIR:-/tmp}/wrapped"))
		if err := s.Wrap(plain); err != nil {
			t.Error(err)
		}
		if out, err := plain.CombinedOutput(); string(out) != "in the session\n" || err != nil || ReportOf(plain).Held() == here.bare() {
			t.Errorf("wrapped: %q, %v", out, err)
		}
		if err := s.sh("kill -9 $$").Run(); endedBy(err) != syscall.SIGKILL {
			t.Errorf("killed by itself: %v", err)
		}
		if err := s.Command("/usr/bin/no-such-tool").Run(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no such tool: %v", err)
		}
		c = s.sh("true")
		c.Dir = "/nowhere"
		if err := c.Run(); err == nil {
			t.Error("it has run in a directory that is not there")
		}
		c = s.sh("trap 'echo signalled; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		c.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(out)
		if err := c.Wait(); string(rest) != "signalled\n" || c.ProcessState.ExitCode() != 3 {
			t.Errorf("a signal: %q, %v", rest, err)
		}
	})
}

// TestKernelWhatACommandLeavesLivesOn until the session ends, and is known by the command that began it.
func TestKernelWhatACommandLeavesLivesOn(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		first := s.sh("sleep 1000 >/dev/null 2>&1 & setsid sleep 2000 >/dev/null 2>&1 & echo started")
		outputOf(t, first)
		list := awaitProcesses(t, s, 2, "sleep")
		if len(list) < 2 {
			t.Fatal(list)
		}
		for _, p := range list {
			if p.Command != "/bin/sh" || p.ID != first.ID() || p.ID == 0 || p.Outside == 0 || p.Memory == 0 {
				t.Errorf("%+v", p)
			}
		}
		if err := s.Signal(list[0].PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		left := awaitProcesses(t, s, 1, "sleep")
		if len(left) != 1 || left[0].PID != list[1].PID {
			t.Errorf("%+v", left)
		}
		other := s.sh("sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 &")
		outputOf(t, other)
		awaitProcesses(t, s, 3, "sleep")
		if err := other.Cancel(); err != nil {
			t.Errorf("Cancel of what a command has left: %v", err)
		}
		if list := awaitProcesses(t, s, 1, "sleep"); len(list) != 1 || list[0].PID != left[0].PID {
			t.Errorf("after Cancel: %+v", list)
		}
		if err := s.Signal(1, syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("init: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if !isDead(left[0].Outside) {
			t.Errorf("a process after Close: %+v", left[0])
		}
		var over *policy.SessionError
		if err := s.sh("true").Run(); !errors.As(err, &over) || !errors.Is(err, os.ErrClosed) {
			t.Errorf("a command after Close: %v", err)
		}
		if err := s.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Close once more: %v", err)
		}
	})
}

// awaitProcesses waits until the session runs n processes of a name, and returns them.
func awaitProcesses(t *testing.T, s *Session, n int, name string) []policy.Process {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		list, err := s.Processes()
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(p policy.Process) bool { return len(p.Args) == 0 || p.Args[0] != name })
		if len(list) == n || time.Now().After(end) {
			return list
		}
	}
}

// TestKernelCancellingOneCommandEndsItsTree, daemons that left its session included, and no other's.
func TestKernelCancellingOneCommandEndsItsTree(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		other := s.sh("exec sleep 3000")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		c := s.CommandContext(ctx, "/bin/sh", "-c", "setsid sh -c 'setsid sleep 1000 & exit' & sleep 1000 & sleep 1000")
		c.Dir = "/"
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		list := awaitProcesses(t, s, 4, "sleep")
		if len(list) != 4 {
			t.Fatal(list)
		}
		cancel()
		if err := c.Wait(); endedBy(err) != syscall.SIGKILL {
			t.Error(err)
		}
		for _, p := range list {
			if mine, dead := p.Args[1] == "1000", isDead(p.Outside); mine != dead {
				t.Errorf("%v: dead %t", p.Args, dead)
			}
		}
		outputOf(t, s.sh("true"))
	})
}

// TestKernelASessionWhoseInitIsKilledEnds: its commands fail with a typed error, and nothing hangs.
func TestKernelASessionWhoseInitIsKilledEnds(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		c := s.sh("exec sleep 1000")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		list := awaitProcesses(t, s, 1, "sleep")
		if len(list) != 1 {
			t.Fatal(list)
		}
		if err := syscall.Kill(parentOf(t, parentOf(t, list[0].Outside)), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var over *policy.SessionError
		var lost *ProcessError
		if err := c.Wait(); !errors.As(err, &over) || !errors.As(err, &lost) || lost.Process != "init" {
			t.Errorf("%v", err)
		}
		if err := s.sh("true").Run(); !errors.As(err, &over) || !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		if _, err := s.Processes(); !errors.As(err, &over) {
			t.Errorf("%v", err)
		}
	})
}

// isDead reports whether a process has ended. One that nothing waits for, as its parent ignores SIGCHLD, keeps its number for a moment
// after its parent has seen that it is gone (exit_notify and release_task of kernel/exit.c).
func isDead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") X ")
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	n, _ := strconv.Atoi(fields[1])
	return n
}
