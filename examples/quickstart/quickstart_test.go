package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestEverythingIsAsItMustBe(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.own = false // to compile the program itself takes long: TestTheFirstCommandWorksOnAFreshMachine does
	failed, err := w.run()
	if err != nil || failed > 0 {
		t.Errorf("%d failed: %v", failed, err)
	}
}

// TestAttacksComeOffWithoutASandbox shows that the checks can fail: the same
// scripts do their damage where nothing is bounded.
func TestAttacksComeOffWithoutASandbox(t *testing.T) {
	// What another user's rights or other programs decide.
	unsure := []string{"become root in a user namespace", "become root by a setuid program", "become another user", "change a setting of the kernel",
		"read the password file", "find a network interface", "move a git hook into place", "make git run a program",
		// What does not happen even where nothing is bounded.
		"leave a process behind", "read a key from the environment"}
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	s, err := sandbox.New(sandbox.Unconfined())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := desk{sandbox: s, world: w}
	for _, a := range attacks(w) {
		if slices.Contains(unsure, a.name) {
			continue
		}
		out, _ := d.bash(a.script)
		if a.damage(out) == "" {
			t.Errorf("%q was not noticed; the script printed %q", a.name, out)
		}
	}
}

// TestTheFirstCommandWorksOnAFreshMachine runs it as a newcomer does, whose home lies in a temporary directory, as in many
// containers, and whose module cache is empty. Modules come from this machine's cache in the place of a server.
func TestTheFirstCommandWorksOnAFreshMachine(t *testing.T) {
	kerneltest.Heavy(t)                                // it builds the program and its modules anew
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		t.Skipf("needs the go command: %v", err)
	}
	downloads := filepath.Join(dirs[0], "cache", "download")
	if _, err := os.Stat(downloads); err != nil {
		t.Skipf("needs downloaded modules: %v", err)
	}
	home, err := os.MkdirTemp("/tmp", "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	cmd := exec.Command("go", "run", "-modcacherw", "./examples/quickstart")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "HOME="+home, "GOPATH=", "GOMODCACHE="+filepath.Join(home, "go", "pkg", "mod"), "GOCACHE="+dirs[1],
		"GOPROXY=file://"+filepath.ToSlash(downloads), "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "go build this program itself") || !strings.Contains(string(out), "\n0 failed") {
		t.Errorf("%v\n%s", err, out)
	}
}
