package commandtest

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// forkFaults are attributes with which os.StartProcess fails after os/exec has asked the context for the last time.
var forkFaults = map[string]func(file *os.File) *syscall.SysProcAttr{
	"a signal that does not exist": func(*os.File) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: 100} },
	"a control group that is a file": func(f *os.File) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd())}
	},
	"a session leader that is to change its group": func(*os.File) *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Setsid: true, Setpgid: true}
	},
}

// failingStarts has commands fail in the fork, and says what is left of that after end.
func failingStarts(t *testing.T, make func() *exec.Cmd, end func()) {
	t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := takeInventory(t)
	for fault, attributes := range forkFaults {
		for range 5 {
			c := make()
			c.Stdin, c.Dir, c.SysProcAttr = strings.NewReader("x"), "/", attributes(null)
			extra := len(c.ExtraFiles)
			if err := c.Start(); err == nil || c.Process != nil {
				t.Fatalf("%s: Start: %v, %v", fault, err, c.Process)
			}
			if len(c.ExtraFiles) != extra || c.Env != nil || c.Dir != "/" || c.Stdout != nil {
				t.Errorf("%s: the fields are not the caller's any more: %d files, %q, %q, %v", fault, len(c.ExtraFiles), c.Env, c.Dir, c.Stdout)
			}
		}
	}
	end()
	if left := leftOver(t, before); left != "" {
		t.Errorf("left open: %s", left)
	}
}

// TestKernelStartsThatFailInTheForkLeaveNothing, neither the embedded Cmd's own nor a wrapped command's. Garbage is not collected meanwhile: it would
// close descriptors.
func TestKernelStartsThatFailInTheForkLeaveNothing(t *testing.T) {
	for name, without := range map[string][]kerneltest.Feature{"with namespaces": nil, "without namespaces": {kerneltest.Namespaces}} {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
					defer debug.SetGCPercent(debug.SetGCPercent(-1))
					p := toolPolicy(openDir(t))
					p.May = []sandbox.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}
					failEachWay(t, p)
					t.Run("with a network", func(t *testing.T) {
						l, err := net.Listen("tcp4", "127.0.0.1:0")
						if err != nil {
							t.Fatal(err)
						}
						defer l.Close()
						n := networkPolicy(p.Files.Write[0], uint16(l.Addr().(*net.TCPAddr).Port))
						n.May = p.May
						failEachWay(t, n)
					})
				})
			})
		})
	}
}

func nothing() {}

func failEachWay(t *testing.T, p sandbox.Policy) {
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	warm(t, s)
	wrapped := func(wrap func(*exec.Cmd) error) func() *exec.Cmd {
		return func() *exec.Cmd {
			c := exec.Command("/bin/true")
			if err := wrap(c); err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Run("a single command", func(t *testing.T) {
		failingStarts(t, func() *exec.Cmd { return s.Command("/bin/true").Cmd }, nothing)
		failingStarts(t, wrapped(s.Wrap), nothing)
	})
	n, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.Command("/bin/true").Run(); err != nil {
		t.Fatal(err)
	}
	t.Run("a session's", func(t *testing.T) {
		failingStarts(t, func() *exec.Cmd { return n.Command("/bin/true").Cmd }, nothing)
		failingStarts(t, wrapped(n.Wrap), nothing)
	})
	t.Run("a function", func(t *testing.T) {
		if err := trueFunc.Command(n).Run(); err != nil { // the first has the session copy the program
			t.Fatal(err)
		}
		failingStarts(t, func() *exec.Cmd { return trueFunc.Command(n).Cmd }, nothing)
	})
	t.Run("one that has taken what was prepared", func(t *testing.T) {
		if p.Network.Observe != nil {
			return // it has the same way, and to open sessions takes time
		}
		prepared, err := sandbox.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := prepared.Command("/bin/true").Run(); err != nil { // a Sandbox keeps the record of what its tools have made
			t.Fatal(err)
		}
		failingStarts(t, func() *exec.Cmd {
			if err := prepared.Prepare(1); err != nil {
				t.Fatal(err)
			}
			return prepared.Command("/bin/true").Cmd
		}, func() { prepared.Close() })
	})
}

var trueFunc = sandbox.Func("true", func(context.Context, io.Reader, io.Writer, ...string) error { return nil })
