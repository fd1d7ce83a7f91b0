package interop

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// An inProcessShell interprets scripts in the harness and starts their programs by
// exec.Cmd: charmbracelet/crush, internal/shell. confine is the one line that a sandbox
// adds to its exec handler. What the interpreter does itself (redirections, globs, test,
// source) stays the harness's own.
type inProcessShell struct {
	confine func(*exec.Cmd) error
	dir     string
}

func (s inProcessShell) execHandler(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		hc := interp.HandlerCtx(ctx)
		path, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
		if err != nil {
			return interp.ExitStatus(127)
		}
		cmd := &exec.Cmd{Path: path, Args: args, Env: exported(hc.Env), Dir: hc.Dir, Stdin: hc.Stdin, Stdout: hc.Stdout, Stderr: hc.Stderr}
		if err := s.confine(cmd); err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
		defer stop()
		err = cmd.Wait()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return interp.ExitStatus(exit.ExitCode())
		}
		return err
	}
}

// exported is the environment that the interpreter gives to programs.
func exported(env expand.Environ) (list []string) {
	for name, v := range env.Each {
		if v.Exported && v.Kind == expand.String {
			list = append(list, name+"="+v.Str)
		}
	}
	return list
}

func (s inProcessShell) run(ctx context.Context, script string) (string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	r, err := interp.New(interp.Dir(s.dir), interp.StdIO(nil, &out, &out), interp.ExecHandlers(s.execHandler))
	if err != nil {
		return "", err
	}
	err = r.Run(ctx, file)
	return out.String(), err
}

func TestKernelHarnessInProcessShell(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir, secret := t.TempDir(), t.TempDir()+"/secret"
			if err := os.WriteFile(secret, []byte("key"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sandbox.New(sandbox.Workspace(dir))
			if err != nil {
				t.Fatal(err)
			}
			sh := inProcessShell{s.Wrap, dir}
			for _, c := range []struct {
				name, script, out string
				status            int
			}{
				{"a program's output and status", "cat /none 2>/dev/null; echo $?; env true", "1\n", 0},
				{"pipes between programs", "printf 'b\\na\\n' | sort | tr '\\n' ' '", "a b ", 0},
				{"a variable of the script", "export V=set; sh -c 'echo $V'", "set\n", 0},
				{"a directory", "mkdir sub && cd sub && sh -c pwd", dir + "/sub\n", 0},
				{"a loop over programs", "for i in 1 2; do sh -c \"exit $i\" || echo $?; done", "1\n2\n", 0},
				{"an unknown program", "no-such-program", "", 127},
				{"a file that the policy does not show", "cat " + secret + " 2>/dev/null", "", 1},
			} {
				out, err := sh.run(t.Context(), c.script)
				var status interp.ExitStatus
				if err != nil && !errors.As(err, &status) {
					t.Errorf("%s: %v", c.name, err)
				}
				if out != c.out || int(status) != c.status {
					t.Errorf("%s: %q, status %d; want %q, %d", c.name, out, status, c.out, c.status)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := sh.run(ctx, "sleep 1000"); err == nil || ctx.Err() == nil {
				t.Errorf("a program that outlasts the context: %v", err)
			}
		})
	})
}
