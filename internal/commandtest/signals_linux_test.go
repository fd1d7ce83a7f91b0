package commandtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// listenScript says each signal that it gets, and ends with its input. It says
// "ready" when it listens. The handler is Python's own, in C, which writes the number of each
// signal into a pipe (signal.set_wakeup_fd): one in the script's language would run amid an allocation,
// or later than a read that waits for the next signal.
const listenScript = `
import os, select, signal
said, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
names = {getattr(signal, "SIG" + n): n for n in "HUP INT QUIT USR1 USR2 TERM CONT WINCH ALRM PIPE IO TSTP URG RTMIN RTMAX".split()}
for number in names:
    signal.signal(number, lambda *_: None)
os.write(1, b"ready\n")
while True:
    can = select.select([said, 0], [], [])[0]
    if said in can:
        for number in os.read(said, 100):
            os.write(1, names[number].encode() + b"\n")
    if 0 in can:
        line = os.read(0, 100)
        if not line:
            break
        if line == b"child\n":
            child = os.posix_spawn("/bin/sleep", ["sleep", "20"], os.environ, setsigdef=[signal.SIGTERM])
        if line == b"ends\n" and os.waitpid(child, 0)[1] != signal.SIGTERM:
            break
        os.write(1, line)
`

// A listener is a tool that says which signals it gets.
type listener struct {
	*testing.T
	cmd   *sandbox.Cmd
	in    io.Writer
	close func()
	lines *bufio.Scanner
	heard map[string]int
}

// listen starts one; change may set its attributes.
func listen(t *testing.T, s *sandbox.Sandbox, change func(c *sandbox.Cmd)) *listener {
	t.Helper()
	kerneltest.Need(t, kerneltest.Command("/usr/bin/python3"))
	c := s.Command("/usr/bin/python3", "-I", "-S", "-c", listenScript)
	if change != nil {
		change(c)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	l := &listener{T: t, cmd: c, in: in, close: func() { in.Close() }, lines: bufio.NewScanner(out), heard: map[string]int{}}
	l.until("ready")
	return l
}

// until reads what the tool says up to a word.
func (l *listener) until(word string) {
	l.Helper()
	for l.lines.Scan() {
		said := strings.TrimSpace(l.lines.Text())
		l.heard[said]++
		if said == word {
			return
		}
	}
	l.Fatalf("the tool ended before it said %q; it said %v", word, l.heard)
}

// once sends a signal somehow, and checks that the tool gets it once. The
// second signal, sent to the stage alone, comes after everything that the stage
// and init have made of the first.
func (l *listener) once(name string, send func() error) {
	l.Helper()
	before := l.heard[name]
	if err := send(); err != nil {
		l.Fatal(err)
	}
	l.until(name)
	if err := l.cmd.Process.Signal(syscall.SIGURG); err != nil {
		l.Fatal(err)
	}
	l.until("URG")
	if got := l.heard[name] - before; got != 1 {
		l.Errorf("%s arrived %d times", name, got)
	}
}

// end ends the tool and checks that it has heard nothing else.
func (l *listener) end(want map[string]int) {
	l.Helper()
	l.close()
	for l.lines.Scan() {
		l.heard[strings.TrimSpace(l.lines.Text())]++
	}
	if err := l.cmd.Wait(); err != nil {
		l.Errorf("Wait: %v", err)
	}
	delete(l.heard, "ready")
	delete(l.heard, "URG")
	delete(l.heard, "")
	if !maps.Equal(l.heard, want) {
		l.Errorf("the tool heard %v, want %v", l.heard, want)
	}
}

var caught = map[string]syscall.Signal{
	"HUP": unix.SIGHUP, "INT": unix.SIGINT, "QUIT": unix.SIGQUIT, "USR1": unix.SIGUSR1, "USR2": unix.SIGUSR2, "TERM": unix.SIGTERM, "CONT": unix.SIGCONT,
	"WINCH": unix.SIGWINCH, "ALRM": unix.SIGALRM, "PIPE": unix.SIGPIPE, "IO": unix.SIGIO, "TSTP": unix.SIGTSTP, "RTMIN": 34, "RTMAX": 64,
}

// inSandbox runs a body as root and as an ordinary user, with a sandbox.
func inSandbox(t *testing.T, body func(t *testing.T, s *sandbox.Sandbox, dir string)) {
	t.Helper()
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := openDir(t)
			s, err := sandbox.New(toolPolicy(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			warm(t, s)
			before := takeInventory(t)
			body(t, s, dir)
			if left := leftOver(t, before); left != "" {
				t.Errorf("left open: %s", left)
			}
		})
	})
}

func TestKernelSignalsArriveOnce(t *testing.T) {
	kerneltest.Long(t)
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		want := map[string]int{}
		for name := range caught {
			want[name] = 1
		}
		t.Run("sent to the process", func(t *testing.T) {
			l := listen(t, s, nil)
			for _, name := range slices.Sorted(maps.Keys(caught)) {
				l.once(name, func() error { return l.cmd.Process.Signal(caught[name]) })
			}
			l.end(want)
		})
		t.Run("sent to the process's group", func(t *testing.T) {
			l := listen(t, s, func(c *sandbox.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
			for _, name := range slices.Sorted(maps.Keys(caught)) {
				l.once(name, func() error { return syscall.Kill(-l.cmd.Process.Pid, caught[name]) })
			}
			l.end(want)
		})
		t.Run("sent to the group of a session leader", func(t *testing.T) {
			l := listen(t, s, func(c *sandbox.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} })
			l.once("TERM", func() error { return syscall.Kill(-l.cmd.Process.Pid, syscall.SIGTERM) })
			l.end(map[string]int{"TERM": 1})
		})
		// As psutil's children() and terminate() do. The tool has a child each time,
		// which SIGTERM ends.
		t.Run("sent to the process's children and at once to the process", func(t *testing.T) {
			l := listen(t, s, nil)
			init := firstChild(t, l.cmd.Process.Pid)
			for range 20 {
				if _, err := io.WriteString(l.in, "child\n"); err != nil {
					t.Fatal(err)
				}
				l.until("child")
				l.once("TERM", func() error {
					return errors.Join(syscall.Kill(init, syscall.SIGTERM), l.cmd.Process.Signal(syscall.SIGTERM))
				})
				if _, err := io.WriteString(l.in, "ends\n"); err != nil {
					t.Fatal(err)
				}
				l.until("ends")
			}
			delete(l.heard, "child")
			delete(l.heard, "ends")
			l.end(map[string]int{"TERM": 20})
		})
		t.Run("many in turn, to process and group", func(t *testing.T) {
			l := listen(t, s, func(c *sandbox.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
			for range 50 {
				l.once("USR1", func() error { return l.cmd.Process.Signal(syscall.SIGUSR1) })
				l.once("TERM", func() error { return syscall.Kill(-l.cmd.Process.Pid, syscall.SIGTERM) })
				l.once("INT", func() error { return l.cmd.Process.Signal(syscall.SIGINT) })
			}
			l.end(map[string]int{"USR1": 50, "TERM": 50, "INT": 50})
		})
		// Init asks the stage whether it has had the first one, too, and gets the answer when it has the second one already.
		t.Run("to the group, while the answer about the one before is on its way", func(t *testing.T) {
			l := listen(t, s, func(c *sandbox.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
			stage := l.cmd.Process.Pid
			init := firstChild(t, stage)
			kill := func(pid int, sig syscall.Signal, until func(status string) bool) {
				t.Helper()
				if err := syscall.Kill(pid, sig); err != nil {
					t.Fatal(err)
				}
				if pid < 0 {
					pid = -pid
				}
				for !until(statusOf(t, pid)) {
					time.Sleep(time.Millisecond)
				}
			}
			stopped := func(status string) bool { return strings.Contains(status, "State:\tT") }
			waits := func(status string) bool { // and has read the signals that it was sent
				_, pending, _ := strings.Cut(status, "ShdPnd:")
				set := uint64(0)
				_, err := fmt.Sscanf(pending, "%x", &set)
				return err == nil && strings.Contains(status, "State:\tS") && set>>(unix.SIGTERM-1)&1 == 0
			}
			kill(init, unix.SIGSTOP, stopped)
			kill(-stage, unix.SIGTERM, waits)
			l.until("TERM")
			kill(stage, unix.SIGSTOP, stopped)
			kill(init, unix.SIGCONT, waits) // hears the signal, asks, and gets its number
			kill(init, unix.SIGSTOP, stopped)
			kill(stage, unix.SIGCONT, waits) // answers
			kill(-stage, unix.SIGTERM, waits)
			l.until("TERM")
			kill(init, unix.SIGCONT, waits)
			l.once("USR1", func() error { return l.cmd.Process.Signal(syscall.SIGUSR1) })
			delete(l.heard, "CONT")
			l.end(map[string]int{"USR1": 1, "TERM": 2})
		})
	})
}

// firstChild returns the child of a process that is in a sandbox.
func firstChild(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child := 0
	if _, err := fmt.Sscan(string(text), &child); err != nil {
		t.Fatalf("the children of %d: %q: %v", pid, text, err)
	}
	return child
}

func statusOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestKernelTerminalSignalsArriveOnce(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		for name, key := range map[string]string{"INT": "\x03", "QUIT": "\x1c"} {
			t.Run("SIG"+name, func(t *testing.T) {
				master, tty, err := pty.Open()
				if err != nil {
					t.Fatal(err)
				}
				defer master.Close()
				l := listen(t, s, func(c *sandbox.Cmd) {
					c.ExtraFiles = []*os.File{tty}
					c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
				})
				tty.Close()
				// A worker of the kernel signals the group, and echoes the key when all have the signal (n_tty_receive_signal_char).
				press := func() error {
					if _, err := master.WriteString(key); err != nil {
						return err
					}
					_, err := io.ReadFull(master, make([]byte, len("^C")))
					return err
				}
				for range 3 {
					l.once(name, press)
				}
				l.end(map[string]int{name: 3})
			})
		}
	})
}

// TestKernelStopsAreSeen is what a shell's job control needs: the process stops
// when the tool stops, waits with WUNTRACED and WCONTINUED see it, and a
// SIGCONT makes both go on.
func TestKernelStopsAreSeen(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		for _, c := range []struct {
			name, script string
			stop         func(pid int) error
		}{
			{"a tool that stops itself", "echo ready; kill -STOP $$; read x; exit 3", func(int) error { return nil }},
			{"a group that is stopped", "echo ready; read x; exit 3", func(pid int) error { return syscall.Kill(-pid, syscall.SIGTSTP) }},
		} {
			t.Run(c.name, func(t *testing.T) {
				cmd := s.Command("/bin/bash", "-c", c.script)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
				if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				pid := cmd.Process.Pid
				if err := c.stop(pid); err != nil {
					t.Fatal(err)
				}
				var ws syscall.WaitStatus
				if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
					t.Fatalf("Wait4: %#x, %v: the process is not stopped", ws, err)
				}
				if err := syscall.Kill(-pid, syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				if _, err := syscall.Wait4(pid, &ws, syscall.WCONTINUED, nil); err != nil || !ws.Continued() {
					t.Fatalf("Wait4: %#x, %v: the process does not go on", ws, err)
				}
				fmt.Fprintln(in, "go on")
				if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
					t.Errorf("Wait: %v", err)
				}
			})
		}
	})
}

// TestKernelStopOfTheProcessStopsTheStage is a known difference: SIGSTOP cannot
// be passed on. It stops the stage alone, the tool goes on, and SIGCONT ends
// that.
func TestKernelStopOfTheProcessStopsTheStage(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		l := listen(t, s, nil)
		pid := l.cmd.Process.Pid
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
			t.Fatalf("Wait4: %#x, %v", ws, err)
		}
		fmt.Fprintln(l.in, "alive")
		l.until("alive")
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		l.until("CONT")
		l.end(map[string]int{"alive": 1, "CONT": 1})
	})
}
