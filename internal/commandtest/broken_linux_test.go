package commandtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// inside is a script that says whether it runs in a sandbox: seccomp's mode
// and no_new_privs, which this test process has not.
const inside = `grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\t\n'; echo " $0 $1"`

const isInside = "NoNewPrivs:1Seccomp:2"

// TestKernelCallerChangesTheEmbeddedCmd changes an embedded Cmd in every way
// that a caller can, and then starts it: it enters the sandbox or fails closed,
// and never comes to this program's own main.
func TestKernelCallerChangesTheEmbeddedCmd(t *testing.T) {
	kerneltest.Long(t)
	const refused = "refused"
	attr := func(a syscall.SysProcAttr) func(*exec.Cmd) { return func(c *exec.Cmd) { c.SysProcAttr = &a } }
	tests := []struct {
		name   string
		change func(c *exec.Cmd)
		want   string // in the output; refused: Start fails
	}{
		{"nothing", func(*exec.Cmd) {}, "a b"},
		{"Env", func(c *exec.Cmd) { c.Env = []string{"A=1"} }, "a b"},
		{"an empty Env", func(c *exec.Cmd) { c.Env = []string{} }, "a b"},
		{"an Env with the stage's own names", func(c *exec.Cmd) { c.Env = []string{"HOLDFAST_PROGRAM_FD=99", "GOMAXPROCS=7"} }, "a b"},
		{"Args", func(c *exec.Cmd) { c.Args = []string{ownMain, "-c", inside, "x", "y"} }, "x y"},
		{"no Args", func(c *exec.Cmd) { c.Args, c.Stdin = nil, strings.NewReader(inside) }, "/bin/bash"},
		{"ExtraFiles", func(c *exec.Cmd) { c.ExtraFiles = []*os.File{os.Stdin, nil, os.Stdin} }, "a b"},
		{"empty ExtraFiles", func(c *exec.Cmd) { c.ExtraFiles = []*os.File{} }, "a b"},
		{"many ExtraFiles", func(c *exec.Cmd) { c.ExtraFiles = make([]*os.File, 900) }, "a b"},
		{"a thousand ExtraFiles", func(c *exec.Cmd) { c.ExtraFiles = make([]*os.File, 1000) }, "a b"},
		{"a terminal at the stage's own descriptor", func(c *exec.Cmd) {
			c.ExtraFiles, c.SysProcAttr = make([]*os.File, 60), &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: stageFD(t, c)}
		}, refused},
		{"SysProcAttr", attr(syscall.SysProcAttr{Setsid: true}), "a b"},
		{"Dir", func(c *exec.Cmd) { c.Dir = "/usr" }, "a b"},
		{"Cancel and WaitDelay", func(c *exec.Cmd) { c.Cancel, c.WaitDelay = func() error { return nil }, 1<<40 }, "a b"},
		{"a nil Cancel", func(c *exec.Cmd) { c.Cancel = nil }, "a b"},
		{"a Path", func(c *exec.Cmd) { c.Path = "/bin/echo" }, refused},
		{"a Path that is the same file", func(c *exec.Cmd) { c.Path = "/proc/self/exe" }, refused},
		{"an empty Path", func(c *exec.Cmd) { c.Path = "" }, refused},
		{"a hidden Dir", func(c *exec.Cmd) { c.Dir = "/root" }, refused},
		{"Chroot", attr(syscall.SysProcAttr{Chroot: "/"}), refused},
		{"Cloneflags", attr(syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}), refused},
		{"Unshareflags", attr(syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}), refused},
		{"UidMappings", attr(syscall.SysProcAttr{UidMappings: []syscall.SysProcIDMap{{Size: 1}}}), refused},
		{"GidMappings", attr(syscall.SysProcAttr{GidMappings: []syscall.SysProcIDMap{{Size: 1}}}), refused},
		{"AmbientCaps", attr(syscall.SysProcAttr{AmbientCaps: []uintptr{1}}), refused},
		{"Ptrace", attr(syscall.SysProcAttr{Ptrace: true}), refused},
	}
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, _ string) {
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) {
				cmd := s.Command("/bin/bash", "-c", inside, "a", "b").Cmd
				c.change(cmd)
				check(t, cmd, c.want == refused, c.want)
			})
		}
		t.Run("a copy that is started", func(t *testing.T) {
			c := *s.Command("/bin/bash", "-c", inside, "a", "b").Cmd
			c.Args = []string{ownMain, "-c", inside}
			failsClosed(t, &c)
		})
		t.Run("a copy that is started of a prepared command", func(t *testing.T) {
			if err := s.Prepare(1); err != nil {
				t.Skip("needs sessions: ", err)
			}
			defer s.Prepare(0)
			c := *s.Command("/bin/bash", "-c", inside, "a", "b").Cmd
			failsClosed(t, &c)
		})
		t.Run("a copy that is started after the original", func(t *testing.T) {
			original := s.Command("/bin/bash", "-c", inside, "a", "b").Cmd
			c := *original
			if err := original.Run(); err != nil {
				t.Fatal(err)
			}
			failsClosed(t, &c)
		})
		t.Run("the fields in a literal", func(t *testing.T) {
			from := s.Command("/bin/bash", "-c", inside, "a", "b").Cmd
			failsClosed(t, &exec.Cmd{Path: from.Path, Args: []string{ownMain, "x"}, Env: []string{"HOLDFAST_PROGRAM_FD=0"}})
			failsClosed(t, &exec.Cmd{Path: from.Path, Args: []string{ownMain, "x"}, Env: []string{"HOLDFAST_PROGRAM_FD=3"}, ExtraFiles: []*os.File{os.Stdin}})
		})
	})
}

// stageFD is the descriptor that an embedded Cmd's Path names.
func stageFD(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	fd, err := strconv.Atoi(filepath.Base(c.Path))
	if err != nil {
		t.Skipf("no trampoline: %s", c.Path)
	}
	return fd
}

// check runs a command and checks that it was inside, or was refused.
func check(t *testing.T, cmd *exec.Cmd, refused bool, want string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), ownMainRan):
		t.Errorf("the harness's own main ran: %s", out)
	case refused && (err == nil || cmd.ProcessState != nil && cmd.ProcessState.Success() || len(out) > 0):
		t.Errorf("it ran: %q, %v", out, err)
	case refused:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Errorf("it was started: %v", err)
		}
	case err != nil || !strings.HasPrefix(string(out), isInside) || !strings.Contains(string(out), want):
		t.Errorf("%q, %v; want %s and %q", out, err, isInside, want)
	}
}

// failsClosed checks that a Cmd that no sandbox knows runs nothing and says why.
func failsClosed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 125 && strings.HasPrefix(string(out), "holdfast: ") && strings.Count(string(out), "\n") == 1 {
		return
	}
	if err != nil && cmd.ProcessState == nil && len(out) == 0 {
		return // Start refused
	}
	t.Errorf("%q, %v; want exit status 125 with a message", out, err)
}
