package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelExtremesHold runs a tool under policies that are as large, as long
// or as small as they may be: it starts, and every bound is held.
func TestKernelExtremesHold(t *testing.T) {
	kerneltest.Heavy(t) // each limit alone is attacked by others
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			workspaceHere(t)
			shown := filepath.Join(os.Getenv("HOME"), "shown")
			for name, change := range map[string]func(*Policy){
				"10,000 rules":                   func(p *Policy) { p.Files.Read = append(p.Files.Read, make10000(t, shown)...) },
				"the longest deadline":           func(p *Policy) { p.Limits.WallClock = math.MaxInt64 },
				"the fewest descriptors":         func(p *Policy) { p.Limits.Rlimits.NoFile = rlimit.At(16) },
				"the smallest private directory": func(p *Policy) { p.Files.PrivateBytes = 1 },
				"the largest":                    func(p *Policy) { p.Files.PrivateBytes = 1 << 62 },
				"the most names":                 func(p *Policy) { p.Files.HideNames = fixture.Numbered("h", 4096-len(policy.ProtectedNames())) },
				"the longest variable":           func(p *Policy) { p.Env.Set["LONG"] = strings.Repeat("x", 1<<17-len("LONG=")-1) },
			} {
				p := workspaceHere(t)
				change(&p)
				c := commandIn(t, p, "exit 5")
				var exit interface{ ExitCode() int }
				if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
					t.Errorf("%s: %v", name, err)
				} else if r := c.Report(); !r.Held() {
					t.Errorf("%s: %s", name, r)
				}
			}
		})
	})
}

func make10000(t *testing.T, dir string) []string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	list := fixture.Numbered(dir+"/", 10_000)
	for _, name := range list {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestKernelACommandThatCannotBeIsRefusedBeforeAnythingRuns: each error is that
// of os/exec where os/exec has one, and otherwise names the field.
func TestKernelACommandThatCannotBeIsRefusedBeforeAnythingRuns(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
		home := os.Getenv("HOME")
		loop, unseen := filepath.Join(home, "loop"), filepath.Join(home, "unseen")
		if err := errors.Join(os.Symlink("loop", loop), os.WriteFile(unseen, []byte("#!/bin/sh\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.Files.Hide = append(p.Files.Hide, "/usr/bin/env")
		for _, test := range []struct {
			name   string
			change func(*Cmd)
			field  string // of a PolicyError
			err    error
		}{
			{"a NUL byte in an argument", func(c *Cmd) { c.Args = append(c.Args, "a\x00") }, "Args[3]", syscall.EINVAL},
			{"a NUL byte in the environment", func(c *Cmd) { c.Env = []string{"A=b", "C=\x00"} }, "Env[1]", syscall.EINVAL},
			{"a NUL byte in the directory", func(c *Cmd) { c.Dir = "/\x00" }, "Dir", syscall.EINVAL},
			{"a NUL byte in the tool", func(c *Cmd) { c.Path = "/bin/sh\x00" }, "Path", syscall.EINVAL},
			{"a hidden tool", func(c *Cmd) { c.Path = "/usr/bin/env" }, "Path", fs.ErrNotExist},
			{"a tool that is not shown", func(c *Cmd) { c.Path = unseen }, "Path", fs.ErrNotExist},
			{"a directory that is not shown", func(c *Cmd) { c.Dir = "/var/log" }, "Dir", fs.ErrNotExist},
			{"a directory that does not exist", func(c *Cmd) { c.Dir += "/none" }, "", fs.ErrNotExist},
			{"a directory that is a file", func(c *Cmd) { c.Dir = "/etc/passwd" }, "", syscall.ENOTDIR},
			{"a directory in a loop", func(c *Cmd) { c.Dir = loop }, "", syscall.ELOOP},
			{"a tool that does not exist", func(c *Cmd) { c.Path = "/usr/bin/none" }, "", fs.ErrNotExist},
			{"a tool in a loop", func(c *Cmd) { c.Path = loop }, "", syscall.ELOOP},
			{"a tool that is a directory", func(c *Cmd) { c.Path = "/usr" }, "", syscall.EACCES},
			{"a tool with too long a name", func(c *Cmd) { c.Path = "/usr/bin/" + strings.Repeat("x", 256) }, "", syscall.ENAMETOOLONG},
			{"one argument that is too long", func(c *Cmd) { c.Args = append(c.Args, strings.Repeat("x", 1<<20)) }, "", syscall.E2BIG},
			{"arguments that are too many", func(c *Cmd) { c.Args = append(c.Args, make([]string, 4<<20)...) }, "", syscall.E2BIG},
			{"the stage's own path", func(c *Cmd) { c.Cmd.Path = "/bin/sh" }, "Cmd.Path", nil},
			{"a root of its own", func(c *Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Chroot: "/"} }, "SysProcAttr.Chroot", nil},
			{"namespaces of its own", func(c *Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS} }, "SysProcAttr.Cloneflags", nil},
			{"a tracer", func(c *Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true} }, "SysProcAttr.Ptrace", nil},
		} {
			c := commandIn(t, p, ": >ran")
			ran := filepath.Join(c.Dir, "ran")
			test.change(c)
			err := c.Run()
			var wrong *PolicyError
			switch {
			case err == nil:
				t.Errorf("%s: no error", test.name)
			case test.field == "" && errors.As(err, &wrong):
				t.Errorf("%s: %v, which os/exec says otherwise", test.name, fmt.Sprintf("%.200s", err))
			case test.field != "":
				fixture.SaysWhatToDo(t, err, test.field)
			}
			if test.err != nil && !errors.Is(err, test.err) {
				t.Errorf("%s: %.200v, want %v", test.name, err, test.err)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Fatalf("%s: it has run", test.name)
			}
		}
	})
}
