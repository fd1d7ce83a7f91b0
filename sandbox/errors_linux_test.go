package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ran are the methods of a command that return its errors.
type ran interface {
	Run() error
	Output() ([]byte, error)
	Wait() error
}

// TestKernelErrorsAreFoundAsThoseOfOSExec: each error of a command is found by errors.Is and errors.As as that of
// os/exec in its place, wrapped or not.
func TestKernelErrorsAreFoundAsThoseOfOSExec(t *testing.T) {
	eachWall(t, allSets[:2], func(t *testing.T, w walls) {
		p := tracedPolicy(t, w)
		s := attackSandbox(t, p, w)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		broken := filepath.Join(p.Files.Write[0], "broken")
		if err := os.WriteFile(broken, []byte("\x7fELF, and then not"), 0o755); err != nil {
			t.Fatal(err)
		}
		plain := func(_ *exec.Cmd, r ran) error { return r.Run() }
		for _, test := range []struct {
			name string
			ctx  context.Context
			args []string
			run  func(*exec.Cmd, ran) error
			is   []error
			exit int // of an *exec.ExitError; 0: there is none
		}{
			{"an exit status", t.Context(), []string{"/bin/sh", "-c", "exit 3"}, plain, nil, 3},
			{"a signal", t.Context(), []string{"/bin/sh", "-c", "kill -9 $$"}, plain, nil, -1},
			{"an exit status with standard error", t.Context(), []string{"/bin/sh", "-c", "echo sorry >&2; exit 4"}, func(_ *exec.Cmd, r ran) error {
				_, err := r.Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || string(exit.Stderr) != "sorry\n" {
					t.Errorf("Stderr: %v", err)
				}
				return err
			}, nil, 4},
			{"a program that PATH does not have", t.Context(), []string{"no-such-program"}, plain, []error{exec.ErrNotFound}, 0},
			{"a program that does not exist", t.Context(), []string{"/no/such/program"}, plain, []error{fs.ErrNotExist, syscall.ENOENT}, 0},
			{"a program that cannot be executed", t.Context(), []string{broken}, plain, []error{syscall.ENOEXEC}, 0},
			{"a directory", t.Context(), []string{"/usr"}, plain, []error{fs.ErrPermission}, 0},
			{"a directory to start in that does not exist", t.Context(), []string{"/bin/true"}, func(c *exec.Cmd, r ran) error { c.Dir = "/no/such/dir"; return r.Run() }, []error{fs.ErrNotExist}, 0},
			{"a context that had ended", gone, []string{"/bin/true"}, plain, []error{context.Canceled}, 0},
			{"Wait before Start", t.Context(), []string{"/bin/true"}, func(_ *exec.Cmd, r ran) error { return r.Wait() }, nil, 0},
		} {
			inside := s.CommandContext(test.ctx, test.args[0], test.args[1:]...)
			outside := exec.CommandContext(test.ctx, test.args[0], test.args[1:]...)
			inside.Dir, outside.Dir = "/", "/"
			for where, err := range map[string]error{"inside": test.run(inside.Cmd, inside), "outside": test.run(outside, outside)} {
				if err == nil {
					t.Errorf("%s, %s: no error", test.name, where)
				}
				err = fmt.Errorf("the harness: %w", err)
				var exit *exec.ExitError
				if errors.As(err, &exit) != (test.exit != 0) || exit != nil && (exit.ExitCode() != test.exit || exit.ProcessState == nil) {
					t.Errorf("%s, %s: %v", test.name, where, err)
				}
				for _, target := range test.is {
					if !errors.Is(err, target) {
						t.Errorf("%s, %s: %v is not %v", test.name, where, err, target)
					}
				}
			}
		}
	})
}

// TestKernelWaitNamesTheStepThatFailed: the sandbox's Wait after the embedded command's own Start, which returns before a tool is executed.
func TestKernelWaitNamesTheStepThatFailed(t *testing.T) {
	eachWall(t, allSets[:2], func(t *testing.T, w walls) {
		shown := t.TempDir()
		p := tracedPolicy(t, w)
		p.Files.Read = append(p.Files.Read, shown)
		s := attackSandbox(t, p, w)
		if err := os.Remove(shown); err != nil {
			t.Fatal(err)
		}
		c := s.Command("/bin/true")
		c.Dir = "/"
		if err := c.Cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var failed *StartError
		if err := c.Wait(); !errors.As(err, &failed) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(failed.Step, shown) {
			t.Errorf("%v: it names neither the step nor ENOENT", err)
		}
	})
}

// TestErrorsOfASandboxAreFound: each exported type by its pointer, as it is and in a wrapped or joined error, with what it wraps.
func TestErrorsOfASandboxAreFound(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	exit := &exec.ExitError{}
	for _, test := range []struct {
		err error
		as  func(error) bool
		is  []error
	}{
		{&PolicyError{Field: "Dir", Err: fs.ErrNotExist}, as[*PolicyError], []error{fs.ErrNotExist}},
		{&PolicyError{Field: "Dir"}, as[*PolicyError], nil},
		{&UnsupportedError{Bound: policy.BoundFiles}, as[*UnsupportedError], []error{errors.ErrUnsupported}},
		{&StartError{Step: "mount", Err: syscall.EPERM}, as[*StartError], []error{syscall.EPERM, fs.ErrPermission}},
		{&StuckError{PID: 1, Err: exit}, as[*StuckError], []error{exit}},
		{&StuckError{PID: 1, Err: exit}, as[*exec.ExitError], nil},
		{&ProcessError{Process: "init", Err: exit}, as[*ProcessError], []error{exit}},
		{&ProcessError{Process: "init", Err: exit}, as[*exec.ExitError], nil},
		{&ProcessError{Process: "init"}, as[*ProcessError], nil},
	} {
		for _, err := range []error{test.err, fmt.Errorf("the harness: %w", test.err), errors.Join(io.EOF, test.err)} {
			if !test.as(err) || err.Error() == "" {
				t.Errorf("%v is not found", err)
			}
			for _, target := range test.is {
				if !errors.Is(err, target) {
					t.Errorf("%v is not %v", err, target)
				}
			}
		}
	}
	s, err := New(Workspace(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, open := s.Open(t.Context())
	for _, err := range []error{s.Command("true").Run(), open} {
		if !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "the Sandbox was closed") {
			t.Errorf("of a closed sandbox: %v", err)
		}
	}
	if err := s.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// TestKernelAnotherUserCannotReachWhatThePolicyGrants: the error names SysProcAttr.Credential and the step, with namespaces by its path, and what
// it says helps.
func TestKernelAnotherUserCannotReachWhatThePolicyGrants(t *testing.T) {
	for name, without := range map[string][]kerneltest.Feature{"with namespaces": nil, "without namespaces": {kerneltest.Namespaces}} {
		t.Run(name, func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: without}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.IsRoot, kerneltest.LandlockABI(1), kerneltest.HasSeccompFilter)
				t.Setenv("TMPDIR", "/tmp") // the child's is closed to other users
				closed := filepath.Join(os.Getenv("HOME"), "toolchain")
				if err := os.Mkdir(closed, 0o755); err != nil {
					t.Fatal(err)
				}
				run := func(p Policy) error {
					s, err := New(p)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					c := s.Command("true")
					c.Dir = "/"
					c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
					return c.Run()
				}
				p := Policy{Files: Files{Read: shownOf("/usr", "/bin", "/lib", "/lib64", closed)}, May: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}}
				var e *PolicyError
				var step *StartError
				err := run(p)
				if !errors.As(err, &e) || e.Field != "SysProcAttr.Credential" || !errors.As(err, &step) || without == nil && !strings.Contains(step.Step, closed) || !strings.Contains(err.Error(), "take what that user cannot reach out") {
					t.Errorf("%v", err)
				}
				p.Files.Read = p.Files.Read[:len(p.Files.Read)-1]
				if err := run(p); err != nil {
					t.Errorf("without the directory: %v", err)
				}
			})
		})
	}
}
