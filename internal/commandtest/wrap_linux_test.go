package commandtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestKernelWrap(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		for name, made := range map[string]func() *exec.Cmd{
			"a literal": func() *exec.Cmd {
				return &exec.Cmd{Path: "/bin/bash", Args: []string{"bash", "-c", inside, "a", "b"}, Dir: dir}
			},
			"exec.Command": func() *exec.Cmd { return exec.Command("/bin/bash", "-c", inside, "a", "b") },
			"exec.CommandContext": func() *exec.Cmd {
				return exec.CommandContext(t.Context(), "/bin/bash", "-c", inside, "a", "b")
			},
			"a command with an Env": func() *exec.Cmd {
				c := exec.Command("/bin/bash", "-c", inside, "a", "b")
				c.Env = []string{"A=1"}
				return c
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := made()
				if err := s.Wrap(c); err != nil {
					t.Fatal(err)
				}
				check(t, c, false, "a b")
				if r := sandbox.ReportOf(c); r == nil || r.Bound(policy.BoundFiles).State != sandbox.Held {
					t.Errorf("the report: %v", r)
				}
			})
		}
		t.Run("a context cancels it", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := exec.CommandContext(ctx, "/bin/bash", "-c", "echo ready; exec sleep 1000")
			c.Stdout = &signalOnWrite{f: cancel}
			if err := s.Wrap(c); err != nil {
				t.Fatal(err)
			}
			if err := c.Run(); !killed(err) {
				t.Errorf("Run: %v", err)
			}
		})
		t.Run("a Cancel of the caller's is kept", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := exec.CommandContext(ctx, "/bin/bash", "-c", "echo ready; exec sleep 1000")
			asked := false
			c.Cancel = func() error { asked = true; return c.Process.Kill() }
			c.Stdout = &signalOnWrite{f: cancel}
			if err := s.Wrap(c); err != nil {
				t.Fatal(err)
			}
			if err := c.Run(); !killed(err) || !asked {
				t.Errorf("Run: %v; Cancel was called: %t", err, asked)
			}
		})
		t.Run("what cannot be wrapped", func(t *testing.T) {
			started := exec.Command("/bin/true")
			if err := started.Start(); err != nil {
				t.Fatal(err)
			}
			defer started.Wait()
			twice := exec.Command("/bin/true")
			if err := s.Wrap(twice); err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]*exec.Cmd{
				"nil": nil, "a started command": started, "a wrapped command": twice, "a sandbox's command": s.Command("/bin/true").Cmd,
			} {
				var policy *sandbox.PolicyError
				if err := s.Wrap(c); !errors.As(err, &policy) {
					t.Errorf("%s: %v, want a PolicyError", name, err)
				}
			}
		})
		t.Run("a tool that is missing fails at Start", func(t *testing.T) {
			c := exec.Command("/bin/bash")
			c.Path = dir + "/missing"
			if err := s.Wrap(c); err != nil {
				t.Fatal(err)
			}
			out, err := c.CombinedOutput()
			if !errors.Is(err, fs.ErrNotExist) || strings.Contains(string(out), ownMainRan) {
				t.Errorf("%q, %v", out, err)
			}
		})
	})
}

// TestKernelWrapKeepsPipes that were made before: a reader sees the tool's end, a
// writer that the tool is gone, and nothing stays open, whether it starts or not.
func TestKernelWrapKeepsPipes(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		before := takeInventory(t)
		for _, name := range []string{"/bin/cat", dir + "/missing"} {
			for range 3 {
				c := exec.Command(name)
				c.Dir = dir
				in, err1 := c.StdinPipe()
				out, err2 := c.StdoutPipe()
				errs, err3 := c.StderrPipe()
				if err := errors.Join(err1, err2, err3, s.Wrap(c)); err != nil {
					t.Fatal(err)
				}
				err := c.Start()
				if name != "/bin/cat" {
					if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("Start of what is missing: %v", err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := in.Write([]byte("hello")); err != nil {
					t.Error(err)
				}
				in.Close()
				text, err1 := io.ReadAll(out)
				other, err2 := io.ReadAll(errs)
				if string(text) != "hello" || len(other) != 0 || errors.Join(err1, err2, c.Wait()) != nil {
					t.Errorf("%q, %q, %v, %v", text, other, err1, err2)
				}
			}
		}
		c := exec.Command("/bin/true")
		c.Dir = dir
		in, err := c.StdinPipe()
		if err := errors.Join(err, s.Wrap(c), c.Start()); err != nil {
			t.Fatal(err)
		}
		for err == nil { // until the tool is dead
			_, err = in.Write(make([]byte, 1<<16))
		}
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("a writer to the dead: %v", err)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		if left := leftOver(t, before); left != "" {
			t.Errorf("left open: %s", left)
		}
	})
}
