package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// A starter makes a command: exec.CommandContext, or a sandbox's. It is the only thing in
// which the harnesses below differ from what they do without a sandbox.
type starter func(ctx context.Context, name string, arg ...string) *exec.Cmd

// asEachStarter runs body, in a new workspace, with os/exec and with a sandbox, as root
// and as an ordinary user. What it asserts holds with both. The process's own working
// directory is not the workspace.
func asEachStarter(t *testing.T, widen func(p *sandbox.Policy), body func(t *testing.T, start starter, dir string)) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, confined := range []bool{false, true} {
				t.Run(fmt.Sprintf("confined=%v", confined), func(t *testing.T) {
					dir, start := t.TempDir(), starter(exec.CommandContext)
					if confined {
						p := sandbox.Workspace(dir)
						if widen != nil {
							widen(&p)
						}
						s, err := sandbox.New(p)
						if err != nil {
							t.Fatal(err)
						}
						start = func(ctx context.Context, name string, arg ...string) *exec.Cmd {
							return s.CommandContext(ctx, name, arg...).Cmd
						}
					}
					body(t, start, dir)
				})
			}
		})
	})
}

// bashTool is the bash tool of a chat client: it makes the pipes, sets a time limit, and passes the
// process's environment (mark3labs/mcphost, internal/builtin/bash.go).
func bashTool(start starter, script string, limit time.Duration) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return bashToolUntil(ctx, start, script)
}

func bashToolUntil(ctx context.Context, start starter, script string) (stdout, stderr string, err error) {
	cmd := start(ctx, "bash", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", "", err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return "", "", err
	}
	if err := cmd.Start(); err != nil {
		return "", "", err
	}
	var wait sync.WaitGroup
	read := func(r io.Reader, to *string) {
		var b strings.Builder
		for in := bufio.NewScanner(r); in.Scan(); {
			b.WriteString(in.Text() + "\n")
		}
		*to = b.String()
	}
	wait.Go(func() { read(out, &stdout) })
	wait.Go(func() { read(errs, &stderr) })
	wait.Wait()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout, stderr, err
}

// atLimit runs something with a time limit, and with longer ones until it has begun by then: on a slow machine a
// second is too short for that.
func atLimit(run func(limit time.Duration) (begun bool)) {
	for limit := time.Second; limit < 2*time.Minute && !run(limit); limit *= 4 {
	}
}

func TestKernelHarnessBashTool(t *testing.T) {
	asEachStarter(t, nil, func(t *testing.T, start starter, _ string) {
		out, errs, err := bashTool(start, "echo out; echo err >&2; (exit 3)", time.Minute)
		if exit := (*exec.ExitError)(nil); out != "out\n" || errs != "err\n" || !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("got %q, %q, %v", out, errs, err)
		}
		var late error
		atLimit(func(limit time.Duration) bool {
			out, _, late = bashTool(start, "echo begun; sleep 1000", limit)
			return out != ""
		})
		if out != "begun\n" || !errors.Is(late, context.DeadlineExceeded) {
			t.Errorf("at the time limit: %q, %v", out, late)
		}
	})
}

// A shellTool runs each command in a new process group with the process's whole
// environment, in its working directory, and kills the group: docker/cagent,
// pkg/tools/builtin/shell.go, its shell and its background jobs.
type shellTool struct {
	start starter
	dir   string
}

func (h shellTool) command(script string) *exec.Cmd {
	cmd := h.start(context.Background(), "/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "AGENT=1", "GIT_PAGER=cat")
	cmd.Dir = h.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (h shellTool) run(script string, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return h.until(ctx, script)
}

func (h shellTool) until(ctx context.Context, script string) string {
	var out bytes.Buffer
	cmd := h.command(script)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "Error starting command: " + err.Error()
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Sprintf("Error executing command: %v\nOutput: %s", err, out.String())
		}
		return out.String()
	case <-ctx.Done():
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		return "Command timed out\nOutput: " + out.String()
	}
}

func TestKernelHarnessShellTool(t *testing.T) {
	asEachStarter(t, func(p *sandbox.Policy) { p.Env.Pass = append(p.Env.Pass, "HARNESS_SETTING") }, func(t *testing.T, start starter, dir string) {
		t.Setenv("HARNESS_SETTING", "inherited")
		t.Setenv("HARNESS_API_KEY", "secret")
		h := shellTool{start, dir}
		secret := "secret\n"
		if strings.HasSuffix(t.Name(), "confined=true") {
			secret = "\n"
		}
		if out := h.run(`echo "$HARNESS_API_KEY"`, time.Minute); out != secret {
			t.Errorf("the harness's secret: %q, want %q", out, secret)
		}
		if out := h.run(`echo "$AGENT $HARNESS_SETTING"; pwd; echo kept >file`, time.Minute); out != "1 inherited\n"+dir+"\n" {
			t.Errorf("got %q", out)
		}
		if out := h.run("cat file; exit 7", time.Minute); out != "Error executing command: exit status 7\nOutput: kept\n" {
			t.Errorf("the next command: %q", out)
		}
		var out string
		atLimit(func(limit time.Duration) bool {
			out = h.run("echo begun; sleep 1000 & sleep 1000", limit)
			return strings.Contains(out, "begun")
		})
		if out != "Command timed out\nOutput: begun\n" {
			t.Errorf("at the time limit: %q", out)
		}
	})
}

// TestKernelHarnessBackgroundJob begins a job, reads what it has said so far, and stops
// it by its process group.
func TestKernelHarnessBackgroundJob(t *testing.T) {
	asEachStarter(t, nil, func(t *testing.T, start starter, dir string) {
		cmd := shellTool{start, dir}.command("echo listening; sleep 1000 & wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(out)
		if line, err := in.ReadString('\n'); line != "listening\n" {
			t.Errorf("the job said %q, %v", line, err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil { // its end: no process has the pipe any more
			t.Errorf("after the kill: %q, %v", rest, err)
		}
		exit := (*exec.ExitError)(nil)
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("Wait: %v", err)
		}
	})
}

// A persistentShell is one login shell that all commands go through, by standard input,
// with their output and status in files of os.TempDir(): opencode-ai/opencode,
// internal/llm/tools/shell/shell.go.
type persistentShell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	turn  int
}

func newPersistentShell(start starter, dir string) (*persistentShell, error) {
	cmd := start(context.Background(), "/bin/bash", "-l")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_EDITOR=true")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &persistentShell{cmd: cmd, stdin: stdin}, cmd.Start()
}

// exec returns a command's output, status and the directory that the shell is in after it.
func (s *persistentShell) exec(ctx context.Context, script string) (out string, status int, dir string, err error) {
	s.turn++
	file := func(kind string) string {
		return filepath.Join(os.TempDir(), fmt.Sprintf("shell-%s-%d-%d", kind, os.Getpid(), s.turn))
	}
	for _, kind := range []string{"status", "stdout", "stderr", "cwd"} {
		defer os.Remove(file(kind))
	}
	quoted := "'" + strings.ReplaceAll(script, "'", `'\''`) + "'"
	fmt.Fprintf(s.stdin, "eval %s < /dev/null > %s 2> %s\nEXEC_EXIT_CODE=$?\npwd > %s\necho $EXEC_EXIT_CODE > %s\n",
		quoted, file("stdout"), file("stderr"), file("cwd"), file("status"))
	for {
		if text, err := os.ReadFile(file("status")); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			status, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			break
		}
		select {
		case <-ctx.Done():
			s.killChildren()
			return "", 0, "", ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	read := func(kind string) string { b, _ := os.ReadFile(file(kind)); return string(b) }
	return read("stdout") + read("stderr"), status, strings.TrimSpace(read("cwd")), nil
}

// killChildren ends what the shell runs, and not the shell: it is to take the next command.
func (s *persistentShell) killChildren() {
	list, _ := exec.Command("pgrep", "-P", strconv.Itoa(s.cmd.Process.Pid)).Output()
	for _, field := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil {
			syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

func TestKernelHarnessPersistentShell(t *testing.T) {
	share := func(p *sandbox.Policy) { p.Files.Write = append(p.Files.Write, os.TempDir()) }
	asEachStarter(t, share, func(t *testing.T, start starter, dir string) {
		t.Setenv("TMPDIR", t.TempDir())
		s, err := newPersistentShell(start, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			s.stdin.Close()
			if err := s.cmd.Wait(); err != nil {
				t.Error(err)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, c := range []struct {
			script, out string
			status      int
			dir         string
		}{
			{"mkdir sub && cd sub; V=kept", "", 0, dir + "/sub"},
			{"echo $V; false", "kept\n", 1, dir + "/sub"},
			{"ls /none 2>/dev/null || echo none; cd ..", "none\n", 0, dir},
		} {
			out, status, cwd, err := s.exec(ctx, c.script)
			if out != c.out || status != c.status || cwd != c.dir || err != nil {
				t.Errorf("%s: %q, status %d, in %s, %v; want %q, %d, %s", c.script, out, status, cwd, err, c.out, c.status, c.dir)
			}
		}
	})
}

// A localBackend executes whole and line by line, and searches by a separate
// program: cloudwego/eino-ext, adk/backend/local.
type localBackend struct{ start starter }

func (b localBackend) execute(ctx context.Context, script string) (string, int, error) {
	cmd := b.start(ctx, "/bin/sh", "-c", script)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode(), nil
	}
	return string(out), 0, err
}

func (b localBackend) stream(ctx context.Context, script string, line func(string)) error {
	cmd := b.start(ctx, "/bin/sh", "-c", script)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		line(in.Text())
	}
	return cmd.Wait()
}

func (b localBackend) grep(ctx context.Context, pattern, dir string) ([]string, error) {
	cmd := b.start(ctx, "grep", "-rl", "-e", pattern, "--", ".")
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil // no file
	}
	return strings.Fields(string(out)), err
}

func TestKernelHarnessLocalBackend(t *testing.T) {
	asEachStarter(t, nil, func(t *testing.T, start starter, dir string) {
		b := localBackend{start}
		if out, status, err := b.execute(t.Context(), "echo text; exit 2"); out != "text\n" || status != 2 || err != nil {
			t.Errorf("execute: %q, %d, %v", out, status, err)
		}
		var lines []string
		if err := b.stream(t.Context(), "for i in 1 2 3; do echo $i; done", func(l string) { lines = append(lines, l) }); strings.Join(lines, " ") != "1 2 3" || err != nil {
			t.Errorf("stream: %q, %v", lines, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f.go"), []byte("package needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if found, err := b.grep(t.Context(), "needle", dir); len(found) != 1 || found[0] != "./f.go" || err != nil {
			t.Errorf("grep: %q, %v", found, err)
		}
		if found, err := b.grep(t.Context(), "nothing has this", dir); len(found) != 0 || err != nil {
			t.Errorf("grep for nothing: %q, %v", found, err)
		}
	})
}
