package main

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestEverythingIsAsItMustBe(t *testing.T) {
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	failed, err := run()
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
