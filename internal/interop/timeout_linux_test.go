package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// timeouts are the harnesses of docs/harnesses.md. Each function makes one, whose own runs a script until its context ends, by what that harness does
// at its time limit, and returns the script's output.
var timeouts = []struct {
	harness string
	make    func(t *testing.T, start boxes, dir string) (run func(ctx context.Context, script string) string)
}{
	{"mcphost", func(_ *testing.T, start boxes, _ string) func(context.Context, string) string {
		return func(ctx context.Context, script string) string {
			out, _, _ := bashToolUntil(ctx, start.command, script)
			return out
		}
	}},
	{"docker-agent", func(_ *testing.T, start boxes, dir string) func(context.Context, string) string {
		return shellTool{start.command, dir}.until
	}},
	{"opencode", func(t *testing.T, start boxes, dir string) func(context.Context, string) string {
		kerneltest.Need(t, kerneltest.Command("pgrep"))
		s, err := newPersistentShell(start.command, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			s.stdin.Close()
			s.cmd.Wait()
		})
		return func(ctx context.Context, script string) string {
			out, _, _, _ := s.exec(ctx, script)
			return out
		}
	}},
	{"eino", func(_ *testing.T, start boxes, _ string) func(context.Context, string) string {
		return func(ctx context.Context, script string) string {
			out, _, _ := localBackend{start.command}.execute(ctx, script)
			return out
		}
	}},
	{"crush", func(t *testing.T, start boxes, dir string) func(context.Context, string) string {
		sh := inProcessShell{start.wrap, dir}
		return func(ctx context.Context, script string) string {
			out, _ := sh.run(ctx, script)
			return out
		}
	}},
}

// TestKernelHarnessTimeouts: at the time limit of each harness what it runs has ended, and its next command works: with a sandbox, with one that
// is prepared, and with a session.
func TestKernelHarnessTimeouts(t *testing.T) {
	for _, h := range timeouts {
		for _, how := range []string{"sandbox", "prepared", "session"} {
			t.Run(h.harness+" with "+how, func(t *testing.T) {
				kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
					kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
						dir := t.TempDir()
						t.Setenv("TMPDIR", t.TempDir())
						run := h.make(t, confine(t, how, dir), dir)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						sleeps := fmt.Sprintf("50.%d%d", os.Getpid(), time.Now().UnixNano()) // which no other process runs
						ended := make(chan struct{})
						go func() { defer close(ended); run(ctx, "sleep "+sleeps) }()
						until(t, "the program to begin", func() bool { return runs(sleeps) })
						cancel()
						<-ended
						until(t, "the program's end", func() bool { return !runs(sleeps) })
						if out := run(t.Context(), "echo after"); out != "after\n" {
							t.Errorf("the next command: %q", out)
						}
					})
				})
			})
		}
	}
}

// boxes are how a harness makes its commands sandboxed ones.
type boxes struct {
	command starter
	wrap    func(*exec.Cmd) error
}

func confine(t *testing.T, how, dir string) boxes {
	p := sandbox.Workspace(dir)
	p.Files.Write = append(p.Files.Write, os.TempDir())
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	command, wrap := s.CommandContext, s.Wrap
	switch how {
	case "prepared":
		if err := s.Prepare(1); err != nil {
			t.Fatal(err)
		}
	case "session":
		sess, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sess.Close() })
		command, wrap = sess.CommandContext, sess.Wrap
	}
	return boxes{func(ctx context.Context, name string, arg ...string) *exec.Cmd { return command(ctx, name, arg...).Cmd }, wrap}
}

// runs reports whether a process has "sleep N" as its arguments.
func runs(n string) bool {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		if b, _ := os.ReadFile(f); bytes.Equal(b, []byte("sleep\x00"+n+"\x00")) {
			return true
		}
	}
	return false
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 6000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited a minute for " + what)
}
