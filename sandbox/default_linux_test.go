package sandbox

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelSetDefault: the policy of Command and of CommandContext is what the function returns for the working directory of
// that moment; nil is Workspace again. Without namespaces Command runs where that policy accepts it, and not before.
func TestKernelSetDefault(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.LandlockABI(1))
			t.Chdir(workspaceHere(t).Dir)
			const writes = "(: >file) 2>/dev/null && echo written; true"
			var dirs []string
			for _, step := range []struct {
				name      string
				policyFor func(dir string) Policy
				refused   bool
				want      string
			}{
				{"nothing set", nil, true, ""},
				{"a workspace in a container", func(dir string) Policy { dirs = append(dirs, dir); return Workspace(dir).InContainer() }, false, "written"},
				{"a read-only directory in a container", func(dir string) Policy { return ReadOnly(dir).InContainer() }, false, ""},
				{"nil", nil, true, ""},
			} {
				SetDefault(step.policyFor)
				for _, c := range []*Cmd{Command("sh", "-c", writes), CommandContext(context.Background(), "sh", "-c", writes)} {
					out, err := c.Output()
					if got := strings.TrimSpace(string(out)); got != step.want || strings.Contains(errorText(err), "InContainer") != step.refused {
						t.Errorf("%s: %q, %v", step.name, got, err)
					}
				}
			}
			if here := workspaceHere(t).Dir; len(dirs) != 2 || dirs[0] != here || dirs[1] != here {
				t.Errorf("the policy was made for %q", dirs)
			}
		})
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestKernelAHomeWhereNothingIsPrivate: without namespaces HOME and TMPDIR are directories of the run's own, with Landlock and without, whether
// the harness has a HOME or not. Nothing is left of them.
func TestKernelAHomeWhereNothingIsPrivate(t *testing.T) {
	const script = `[ -w "$HOME" ] && [ -w "$TMPDIR" ] && : >"$HOME/x" && mktemp >/dev/null && echo "$HOME"`
	for name, without := range map[string][]kerneltest.Feature{
		"with Landlock":    {kerneltest.Namespaces},
		"without Landlock": {kerneltest.Namespaces, kerneltest.Landlock},
	} {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
					dir := workspaceHere(t).Dir
					if as == kerneltest.Ordinary { // as on a read-only root: another directory for temporary files is taken
						tmp := t.TempDir()
						if err := os.Chmod(tmp, 0o555); err != nil {
							t.Fatal(err)
						}
						t.Setenv("TMPDIR", tmp)
					}
					for _, home := range []string{os.Getenv("HOME"), "/nonexistent", ""} {
						t.Setenv("HOME", home)
						s, err := New(Workspace(dir).InContainer())
						if err != nil {
							t.Fatal(err)
						}
						c := s.Command("sh", "-c", script)
						c.Dir = dir
						out, err := c.Output()
						inside := strings.TrimSpace(string(out))
						if err != nil || inside == "" || inside == home {
							t.Errorf("HOME=%q: inside %q, %v", home, inside, err)
							continue
						}
						if _, err := os.Lstat(inside); err == nil {
							t.Errorf("HOME=%q: %s is left", home, inside)
						}
					}
				})
			})
		})
	}
}
