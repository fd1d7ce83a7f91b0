package trust

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
)

// TestPlaces: whether a link, or a program, below a user's home is believed. The names are below the root of a tree;
// home/me is the home.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     string // the last name is a link or a program
		more   []string
		change func(root string) error
		want   bool
	}{
		{"a toolchain's program", "home/me/.cargo/bin/cargo", nil, nil, true},
		{"a link in the home itself", "home/me/.cache -> ROOT/data", nil, nil, true},
		{"a link in a directory that leads to a toolchain", "home/me/.local/bin -> ../dotfiles/bin", nil, nil, true},
		{"a link in the directory of build caches", "home/me/.cache/go-build -> ROOT/data", nil, nil, true},
		{"the user's settings", "home/me/.config/go/env", nil, nil, true},
		{"a toolchain that is a repository", "home/me/.pyenv/versions/3 -> 3.12.1", []string{"home/me/.pyenv/.git/HEAD"}, nil, true},
		{"a home that is a repository", "home/me/.pyenv/versions/3 -> 3.12.1", []string{"home/me/.git/HEAD"}, nil, true},
		{"~/bin", "home/me/bin/x -> y", nil, nil, true},
		{"~/go/bin", "home/me/go/bin/x", nil, nil, true},
		{"modules beside ~/go/bin", "home/me/go/src/p/bin/x", nil, nil, false},
		{"~/go itself", "home/me/go/bin -> src/p/bin", nil, nil, false},
		{"a project", "home/me/p/venv/bin/python -> /usr/bin/python3", nil, nil, false},
		{"a project's hidden directory", "home/me/p/.local/bin/x", nil, nil, false},
		{"what a link of the home leads to", "home/me/dotfiles/bin/x -> y", []string{"home/me/bin -> dotfiles/bin"}, nil, false},
		{"a toolchain in a repository around it", "home/me/.local/share/mise/shims/x", []string{"home/me/.local/share/.git/HEAD"}, nil, false},
		{"a harness's copies of projects", "home/me/.config/agent/worktrees/a/bin/x", nil, nil, false},
		{"an agent's own directory", "home/me/.agent/bin/x", nil, nil, false},
		{"another directory of caches", "home/me/.cache/agent/bin/x", nil, nil, false},
		{"beside the home", "home/other/.cargo/bin/x", nil, nil, false},
		{"a home whose name begins with the home's", "home/me2/.cargo/bin/x", nil, nil, false},
		{"a toolchain to which all can write", "home/me/.cargo/bin/x", nil, func(root string) error { return os.Chmod(root+"/home/me/.cargo/bin", 0o777) }, false},
		{"and one level up", "home/me/.cargo/bin/x", nil, func(root string) error { return os.Chmod(root+"/home/me/.cargo", 0o777) }, false},
		{"a home to which all can write", "home/me/.cargo/bin/x", nil, func(root string) error { return os.Chmod(root+"/home/me", 0o777) }, false},
		{"a program to which all can write", "home/me/.cargo/bin/x", nil, func(root string) error { return os.Chmod(root+"/home/me/.cargo/bin/x", 0o777) }, false},
		{"what does not exist", "home/me/.cargo/bin/x", nil, func(root string) error { return os.Remove(root + "/home/me/.cargo/bin/x") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fixture.Tree(t, append([]string{"home/me/", c.at}, c.more...)...)
			if c.change != nil {
				if err := c.change(root); err != nil {
					t.Fatal(err)
				}
			}
			name, _, _ := strings.Cut(c.at, " -> ")
			if got := New(root + "/home/me").Holds(root + "/" + name); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestPlacesOfAnotherOwner: a group of the user's alone may write, and another user's directories are not the user's.
func TestPlacesOfAnotherOwner(t *testing.T) {
	root := fixture.Tree(t, "home/me/.cargo/bin/x")
	dir := root + "/home/me/.cargo/bin"
	private := os.Geteuid() != 0 && os.Getegid() == os.Geteuid()
	if err := os.Chmod(dir, 0o775); err != nil {
		t.Fatal(err)
	}
	if got := New(root + "/home/me").Holds(dir + "/x"); got != private {
		t.Errorf("a directory of mode 0775: got %v, want %v", got, private)
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files to others")
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if New(root + "/home/me").Holds(dir + "/x") {
		t.Error("another user's directory is held")
	}
}

// TestSystemsPlaces: on this machine. A root harness's tools are root, so that a list takes the place of the owner.
func TestSystemsPlaces(t *testing.T) {
	p := New("")
	sh, err := p.Program("sh", "relative:/none:/usr/bin:/bin")
	if err != nil || !p.Holds(sh) {
		t.Errorf("sh: %q, %v", sh, err)
	}
	if !p.Holds("/usr/bin") || !p.Holds("/etc") {
		t.Error("the system's directories are not held")
	}
	dir := fixture.Tree(t, "bin/")
	if err := os.WriteFile(dir+"/bin/sh", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Program("sh", dir+"/bin:/usr/bin:/bin"); err != nil || got != sh {
		t.Errorf("a program of another place comes first: %q, %v", got, err)
	}
	if got, err := p.Program("sh", dir+"/bin"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %q, %v", got, err)
	}
	if got := p.Search(dir + "/bin:/usr/bin:.::relative"); got != "/usr/bin" {
		t.Errorf("Search returns %q", got)
	}
	if os.Geteuid() != 0 {
		return
	}
	made, err := os.MkdirTemp("/srv", "trust")
	if err != nil {
		t.Skip("needs a directory in /srv: ", err)
	}
	defer os.RemoveAll(made)
	if err := errors.Join(os.Chmod(made, 0o755), os.Symlink("/etc", made+"/x")); err != nil {
		t.Fatal(err)
	}
	if p.Holds(made + "/x") {
		t.Error("a root harness believes what a tool of its own can have made")
	}
}

// TestProgramByLinks: a link is followed only where no tool can have made it, and what it leads to is judged as well.
func TestProgramByLinks(t *testing.T) {
	root := fixture.Tree(t, "home/me/.cargo/bin/cargo -> rustup", "home/me/.cargo/bin/evil -> ../../p/evil", "home/me/bin -> p/bin", "home/me/p/bin/cargo -> ROOT/home/me/.cargo/bin/rustup")
	for _, name := range []string{"home/me/.cargo/bin/rustup", "home/me/p/evil"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := New(root + "/home/me")
	for _, c := range []struct{ name, search, want string }{
		{"cargo", "home/me/.cargo/bin", "home/me/.cargo/bin/rustup"},
		{"cargo", "home/me/bin", ""},
		{"cargo", "home/me/p/bin", ""},
		{"evil", "home/me/.cargo/bin", ""},
	} {
		got, err := p.Program(c.name, root+"/"+c.search)
		if (err == nil) != (c.want != "") || err == nil && got != root+"/"+c.want {
			t.Errorf("%s in %s: %q, %v", c.name, c.search, got, err)
		}
	}
}

// TestRun: what a program prints, where and with what it runs, and how it is ended.
func TestRun(t *testing.T) {
	sh, err := New("").Program("sh", "/usr/bin:/bin")
	if err != nil {
		t.Skip("needs sh: ", err)
	}
	t.Setenv("OF_THE_HARNESS", "x")
	out, err := Run(sh, []string{"A=b"}, "-c", `echo "$PWD $A $OF_THE_HARNESS"; cat; echo no >&2`)
	if err != nil || string(out) != "/ b \n" {
		t.Errorf("got %q, %v", out, err)
	}
	var status *exec.ExitError
	if out, err = Run(sh, nil, "-c", "echo x; exit 3"); !errors.As(err, &status) || status.ExitCode() != 3 || string(out) != "x\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if out, err = Run(sh, nil, "-c", "while :; do echo 0123456789012345678901234567890123456789; done"); err != ErrTooLong || out != nil {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}

// TestRunLeavesNothing of the program's group behind, in the end and after the time.
func TestRunLeavesNothing(t *testing.T) {
	sh, err := New("").Program("sh", "/usr/bin:/bin")
	if err != nil {
		t.Skip("needs sh: ", err)
	}
	defer func(d time.Duration) { runTime = d }(runTime)
	for _, c := range []struct {
		script string
		time   time.Duration
		want   error
	}{
		{"sleep 3600 >/dev/null & echo $!", time.Minute, nil},
		{"sleep 3600 & echo $!; wait", time.Second, context.DeadlineExceeded},
		{"sleep 3600 & echo $!; exit 0", time.Minute, exec.ErrWaitDelay}, // its child has its output
	} {
		runTime = c.time
		file := t.TempDir() + "/pid"
		if _, err = Run(sh, []string{"F=" + file, "PATH=/usr/bin:/bin"}, "-c", strings.Replace(c.script, "echo $!", `echo $! >"$F"; echo x`, 1)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.script, err, c.want)
		}
		text, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); runs(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: its child is there", c.script)
			}
		}
	}
}

// runs reports whether a process is there and no zombie, which its parent may leave.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}
