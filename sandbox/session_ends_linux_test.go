package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// terminal makes a pseudo-terminal.
func terminal(t *testing.T) (ours, tools *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs /dev/ptmx: %v", err)
	}
	t.Cleanup(func() { ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tools, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("needs /dev/pts: %v", err)
	}
	t.Cleanup(func() { tools.Close() })
	return ours, tools
}

// TestKernelACommandOfASessionHasItsTerminal: as libraries for terminals start a command, it controls the terminal, which signals its group.
func TestKernelACommandOfASessionHasItsTerminal(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		ours, tools := terminal(t)
		c := s.sh(`trap 'echo interrupted; exit 5' INT; [ -t 0 ] && echo $(cut -d ' ' -f 8 /proc/$$/stat) $$; while :; do sleep 0.01; done`)
		c.Stdin, c.Stdout, c.Stderr = tools, tools, tools
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(ours)
		line, err := lines.ReadString('\n')
		if w := strings.Fields(line); err != nil || len(w) != 2 || w[0] != w[1] {
			t.Errorf("the terminal's foreground group and the tool's: %q, %v", line, err)
		}
		ours.Write([]byte{3}) // the interrupt character
		line, err = lines.ReadString('\n')
		if !strings.HasSuffix(line, "interrupted\r\n") {
			t.Errorf("%q, %v", line, err)
		}
		if err := c.Wait(); c.ProcessState.ExitCode() != 5 {
			t.Error(err)
		}
	})
}

// TestKernelASignalToTheGroupOfACommandOfASession reaches the tool's group, where the command was given one.
func TestKernelASignalToTheGroupOfACommandOfASession(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		c := s.sh(`trap 'echo parent; exit 6' TERM; sh -c 'trap "echo child; exit" TERM; echo ready; while :; do sleep 0.01; done'; exit 7`)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		lines.ReadString('\n')
		if err := syscall.Kill(-c.Process.Pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		child, _ := lines.ReadString('\n')
		parent, _ := lines.ReadString('\n')
		if err := c.Wait(); child != "child\n" || parent != "parent\n" || c.ProcessState.ExitCode() != 6 {
			t.Errorf("%q, %q, %v", child, parent, err)
		}
	})
}

// TestKernelTheDeadlineOfACommandOfASession ends that command with what it has started, and not the session.
func TestKernelTheDeadlineOfACommandOfASession(t *testing.T) {
	kerneltest.Long(t)
	inSessionOf(t, func(p *Policy) { p.Limits.WallClock = time.Second }, func(t *testing.T, s *Session) {
		if err := s.sh("setsid sleep 1000 & sleep 1000").Run(); !errors.Is(err, ErrDeadline) {
			t.Error(err)
		}
		if list, err := s.Processes(); len(list) != 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
		if err := s.sh("true").Run(); err != nil && !errors.Is(err, ErrDeadline) { // a slow machine
			t.Error(err)
		}
	})
}

// TestKernelACommandOfASessionStops with its tool, and goes on with it, as a shell's job control has it.
func TestKernelACommandOfASessionStops(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		c := s.sh("kill -STOP $$; exit 3")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		c.Process.Signal(syscall.SIGCONT)
		if err := c.Wait(); c.ProcessState.ExitCode() != 3 {
			t.Error(err)
		}
	})
}

// TestKernelAFailedStartIsNotListed among the session's processes, at no moment: execve(2) fails in a process that has the command's warden.
func TestKernelAFailedStartIsNotListed(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p := attackPolicy(t, makeGrounds(t, 1), w)
		broken := filepath.Join(p.Files.Write[0], "broken")
		if err := os.WriteFile(broken, []byte("\x7fELF, and then not"), 0o755); err != nil {
			t.Fatal(err)
		}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stop, looked := make(chan struct{}), make(chan []policy.Process)
		go func() {
			for {
				list, _ := s.Processes()
				select {
				case <-stop:
					looked <- list
					return
				default:
				}
				if len(list) > 0 {
					<-stop
					looked <- list
					return
				}
			}
		}()
		for range 50 {
			c := s.Command(broken)
			c.Dir = "/"
			if err := c.Run(); !errors.Is(err, syscall.ENOEXEC) {
				t.Error(err)
			}
		}
		close(stop)
		if list := <-looked; len(list) > 0 {
			t.Errorf("%+v", list)
		}
	})
}
