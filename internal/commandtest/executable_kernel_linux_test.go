package commandtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelAHiddenInterpreterIsNamed by Start, whether the sandbox's own Start hears ENOENT from
// inside or an embedded command's Start looks before it starts anything. One that is nowhere is
// ENOENT, as without a sandbox.
func TestKernelAHiddenInterpreterIsNamed(t *testing.T) {
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		away, err := os.MkdirTemp("", "hidden")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(away)
		hidden := filepath.Join(away, "interpreter")
		in := func(c *sandbox.Cmd) *sandbox.Cmd { c.Dir = dir; return c }
		write := func(name, text string) string {
			p := filepath.Join(dir, name)
			if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			return p
		}
		if err := os.WriteFile(hidden, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		script, missing := write("hidden", "#!"+hidden+"\n"), write("missing", "#!"+hidden+"-missing\n")
		for name, start := range map[string]func(c *sandbox.Cmd) error{
			"Start":              (*sandbox.Cmd).Start,
			"the embedded Start": func(c *sandbox.Cmd) error { return c.Cmd.Start() },
			"Output":             func(c *sandbox.Cmd) error { _, err := c.Output(); return err },
		} {
			var refused *sandbox.PolicyError
			if err := start(in(s.Command(script))); !errors.As(err, &refused) || !strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: an interpreter that the policy hides: %v", name, err)
			}
			if err := start(in(s.Command(missing))); !errors.Is(err, os.ErrNotExist) || errors.As(err, &refused) {
				t.Errorf("%s: an interpreter that is missing: %v", name, err)
			}
		}
	})
}
