package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// What an existing repository's configuration names is protected, unless Write names it, too, or hooks are not protected.
func TestWhatAConfigurationNamesIsProtected(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\thooksPath = ci\n[include]\n\tpath = ../local\n", "ci/x": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name           string
		change         func(p *Policy)
		hooks, include bool // may be written
	}{
		{"the default", func(p *Policy) {}, false, false},
		{"Write names the directory of hooks", func(p *Policy) { p.Files.Write = append(p.Files.Write, dir+"/ci") }, true, false},
		{"hooks are excepted", func(p *Policy) { p.Files.Protect.Except = []string{".git/hooks"} }, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Workspace(dir)
			c.change(&p)
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]bool{"/ci/pre-commit": c.hooks, "/local": c.include, "/plain": true} {
				if ok, why := s.Allows(Access{Op: OpCreate, Path: dir + path}); ok != want {
					t.Errorf("%s may be made: %v, not %v: %+v", path, ok, want, why)
				}
			}
			if got := slices.Contains(s.obeyed, dir+"/ci"); got == c.hooks {
				t.Errorf("held: %q", s.obeyed)
			}
		})
	}
}

// What a tool has left in a workspace has New name it, and what New says helps.
func TestTooMuchThatGitObeysIsNamed(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "[include]\npath = ../%d\n", i)
	}
	for _, text := range []string{many.String(), "[core]\n" + strings.Repeat("hooksPath = a/b/c/d/e/f/g/h\n", 20000)} {
		if err := os.MkdirAll(dir+"/x", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"HEAD": "x", "config": text} {
			if err := os.WriteFile(dir+"/x/"+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := New(Workspace(dir))
		var bad *PolicyError
		if !errors.As(err, &bad) || !strings.Contains(bad.Problem, dir+"/x/config ") && !strings.Contains(bad.Problem, dir+"/x/config names") || !strings.Contains(bad.Remedy, "remove it") {
			t.Errorf("%v", err)
		}
		t.Log(err)
		if err := os.Remove(dir + "/x/config"); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Workspace(dir)); err != nil {
			t.Error("once it is removed:", err)
		}
	}
}
