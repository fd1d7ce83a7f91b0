package sandboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestCommandRunsInAnEmptyWorkspace(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := sandboxtest.Command(t, "sh", "-c", `ls -A; echo made >f && cat f; cat "$1"; echo "to stderr" >&2; exit 3`, "sh", outside)
	got := sandboxtest.Run(t, cmd)
	if got.Stdout != "made\n" || got.Code != 3 || !strings.Contains(got.Stderr, "to stderr") {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(got.Stderr, "No such file") {
		t.Errorf("the tool has seen what lies outside: %q", got.Stderr)
	}
	if !got.Report.Held() {
		t.Errorf("a report that does not hold passed:\n%v", got.Report)
	}
}

func TestRunEndsAtTheDeadline(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	t.Parallel() // it waits
	p := sandbox.Workspace(t.TempDir())
	p.Limits.WallClock = 3 * time.Second // on a busy machine a start takes a while
	got := sandboxtest.Run(t, inside(t, p, "sleep", "1000"))
	if !errors.Is(got.Err, sandbox.ErrDeadline) || got.Code != -1 {
		t.Errorf("got %+v", got)
	}
}

func TestRunKeepsSoMuchOutput(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	got := sandboxtest.Run(t, sandboxtest.Command(t, "sh", "-c", "yes | head -c 3000000; echo x >&2"))
	if len(got.Stdout) != sandboxtest.MaxOutput || !got.Truncated || got.Err != nil || got.Stderr != "x\n" {
		t.Errorf("%d bytes, truncated %v, %v", len(got.Stdout), got.Truncated, got.Err)
	}
}

func TestNothingIsLeftOfACommandThatNobodyWaitedFor(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	var cmd *sandbox.Cmd
	t.Run("a test that starts and forgets", func(t *testing.T) {
		cmd = sandboxtest.Command(t, "sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	})
	if cmd != nil && (cmd.ProcessState == nil || cmd.ProcessState.Success()) {
		t.Errorf("the command's state is %v", cmd.ProcessState)
	}
}

// TestAWorkspaceOfReadOnlyDirectoriesIsRemoved: "go mod download" makes such directories, and a link is not followed.
func TestAWorkspaceOfReadOnlyDirectoriesIsRemoved(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			outside := t.TempDir()
			if err := os.Chmod(outside, 0o555); err != nil {
				t.Fatal(err)
			}
			dir := ""
			t.Run("a test", func(t *testing.T) {
				cmd := sandboxtest.Command(t, "sh", "-c", `mkdir -p mod/x/y && touch mod/x/y/f && ln -s "$1" mod/x/link && chmod 0 mod/x/y && chmod 555 mod/x mod .`, "sh", outside)
				if got := sandboxtest.Run(t, cmd); got.Err != nil {
					t.Errorf("got %+v", got)
				}
				dir = cmd.Dir
			})
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the workspace: %v", err)
			}
			if is, err := os.Stat(outside); err != nil || is.Mode().Perm() != 0o555 {
				t.Errorf("what a link leads to: %v, %v", is, err)
			}
		})
	})
}

func TestWhatFailsATest(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	open := sandbox.Workspace(t.TempDir())
	open.Network.Host = true
	for _, test := range []struct {
		name string
		body func(t testing.TB)
		want string // in the log; "": it passes
	}{
		{"a policy that is wrong", func(t testing.TB) {
			sandboxtest.New(t, sandbox.Policy{Files: sandbox.Files{Read: []string{"relative"}}})
		}, "Files.Read[0]"},
		{"a policy that is wrong is no reason to skip", func(t testing.TB) {
			sandboxtest.NewOrSkip(t, sandbox.Policy{Files: sandbox.Files{Read: []string{"relative"}}})
		}, "Files.Read[0]"},
		{"a tool that does not exist", func(t testing.TB) {
			sandboxtest.Run(t, inside(t, sandbox.Workspace(t.TempDir()), "/usr/bin/no-such-tool"))
		}, "no such file"},
		{"a tool that fails", func(t testing.TB) {
			sandboxtest.Run(t, inside(t, sandbox.Workspace(t.TempDir()), "false"))
		}, ""},
		{"a bound that the policy leaves open", func(t testing.TB) {
			sandboxtest.Run(t, inside(t, open, "true"))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := record(t, test.body)
			if failed := test.want != ""; r.failed != failed || r.skipped || !strings.Contains(r.log, test.want) {
				t.Errorf("failed %v, skipped %v, log %q; want %q", r.failed, r.skipped, r.log, test.want)
			}
		})
	}
}

// inside makes a command in a policy's first writable directory.
func inside(t testing.TB, p sandbox.Policy, name string, arg ...string) *sandbox.Cmd {
	cmd := sandboxtest.New(t, p).CommandContext(t.Context(), name, arg...)
	cmd.Dir = p.Files.Write[0]
	sandboxtest.Check(t, cmd)
	return cmd
}

// recorder is a test that notes what is said of it.
type recorder struct {
	testing.TB
	failed, skipped bool
	log             string
	cleanups        []func()
	ctx             context.Context
}

// record runs a body as a test of its own would run it.
func record(t *testing.T, body func(testing.TB)) *recorder {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			cancel()
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		body(r)
	}()
	<-done
	return r
}

func (r *recorder) Helper()                   {}
func (r *recorder) Context() context.Context  { return r.ctx }
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any) { r.failed = true; r.log += fmt.Sprintf(f, a...) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
func (r *recorder) Fatal(a ...any)            { r.Errorf("%v", fmt.Sprint(a...)); runtime.Goexit() }
func (r *recorder) Skip(a ...any)             { r.skipped = true; r.log += fmt.Sprint(a...); runtime.Goexit() }
