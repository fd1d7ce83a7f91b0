package stage

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// asStage executes a stage with a file as its program.
func asStage(t *testing.T, l *launch.Launcher, file *os.File, env []string) (code int, stderr string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Cmd{Path: l.Path, Args: []string{"tool", "-test.run=^$"}, Env: env, Dir: "/", Stderr: &out}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd.ExtraFiles = l.Files(nil, file, null) // a nil file leaves its descriptor closed
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// TestKernelAStageWithoutAProgramOfItsOwnEnds: it says why, with the exit code
// for it, and the program's own main does not run.
func TestKernelAStageWithoutAProgramOfItsOwnEnds(t *testing.T) {
	byBoth(t, func(t *testing.T, l *launch.Launcher) {
		whole := compiled(t, plan.Plan{}).Program(Run{Path: "/bin/true", Argv: []string{"true"}, Layout: l.Layout(3)})
		own := l.Layout(3).Env
		edit := func(f func(h *wire.Header)) []byte {
			b := bytes.Clone(whole)
			f(headerOf(b))
			return b
		}
		tests := []struct {
			name    string
			program []byte
			sealed  bool
			env     []string
			says    string
			other   bool // the variable names another descriptor
		}{
			{"nothing at all", nil, false, nil, "not by a sandbox", false},
			{"an empty environment", whole, true, []string{}, "not by a sandbox", false},
			{"another environment", whole, true, []string{"PATH=/bin"}, "not by a sandbox", false},
			{"a descriptor that is no number", whole, true, []string{wire.FDName + "=x3"}, "not by a sandbox", false},
			{"a standard descriptor", whole, true, []string{wire.FDName + "=2"}, "not by a sandbox", true},
			{"a descriptor that is closed", nil, false, own, "not a sealed memfd", false},
			{"a program that is not sealed", whole, false, own, "not a sealed memfd", false},
			{"another descriptor than its own", whole, true, []string{wire.FDName + "=4"}, "not a sealed memfd", true},
			{"a program cut off in its header", whole[:20], true, own, "not made for this process", false},
			{"a program that is empty", []byte{}, true, own, "not made for this process", false},
			{"a program with another magic", edit(func(h *wire.Header) { h.Magic++ }), true, own, "not made for this process", false},
			{"a program for another descriptor", edit(func(h *wire.Header) { h.SelfFD = 9 }), true, own, "not made for this process", false},
			{"a program cut off after its header", whole[:len(whole)-8], true, own, "not whole", false},
			{"a program that says it is larger", edit(func(h *wire.Header) { h.Size += 1 << 20 }), true, own, "not whole", false},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				if l != launch.Reexec && test.other {
					return // the trampoline would take for its executable what is two descriptors further
				}
				var file *os.File
				if test.program != nil {
					file = memfd(t, test.program, test.sealed)
				}
				code, stderr := asStage(t, l, file, test.env)
				if code != wire.ExitFailed || !strings.HasPrefix(stderr, "holdfast: ") || !strings.Contains(stderr, test.says) || strings.Count(stderr, "\n") != 1 {
					t.Errorf("exit %d, %q", code, stderr)
				}
			})
		}
	})
}

func memfd(t *testing.T, program []byte, sealed bool) *os.File {
	t.Helper()
	if sealed {
		f, err := Seal(program)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "test")
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(program); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestKernelASealedProgramCannotBeChanged by a process that has its descriptor.
func TestKernelASealedProgramCannotBeChanged(t *testing.T) {
	f := memfd(t, []byte("program"), true)
	if _, err := f.WriteAt([]byte("P"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("write: %v", err)
	}
	if err := f.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncate: %v", err)
	}
}

// TestKernelTheSmallestPlanRuns is the smallest plan there is, run by hand.
func TestKernelTheSmallestPlanRuns(t *testing.T) { byBoth(t, smallest) }

func smallest(t *testing.T, l *launch.Launcher) {
	p := plan.Plan{Steps: []plan.Step{{In: plan.Stage, Do: plan.OpenProc{}}, {In: plan.Tool, Do: plan.Chdir{}}, {In: plan.Tool, Do: plan.RestoreSignals{}}}}
	c, err := NewControl()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	program := memfd(t, compiled(t, p).Program(Run{Path: "/bin/sh", Argv: []string{"sh", "-c", "exit 9"}, Quiet: true, Layout: l.Layout(3)}), true)
	cmd := exec.Cmd{Path: l.Path, Env: l.Layout(3).Env, Dir: "/", ExtraFiles: l.Files(nil, program, c.Child)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.Passed()
	if err := c.AwaitStart(); err != nil || !c.Started || c.Failed != nil {
		t.Errorf("%v, held %v, failed %+v", err, c.Started, c.Failed)
	}
	c.AwaitEvidence()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Error(err)
	}
	c.Drain() // the stage and init talk at the same time: where init is may be said last
	if c.AwaitEmpty(nil, MostEnd); len(c.Evidence) == 0 || c.InitPID == 0 {
		t.Errorf("%d bytes of evidence, init %d", len(c.Evidence), c.InitPID)
	}
}
