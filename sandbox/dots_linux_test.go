package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// dotNotes are the report's words about names that begin with a dot and that no list knows.
func dotNotes(r *Report) string {
	line := r.Bound(policy.BoundFiles)
	i := slices.IndexFunc(line.Notes, func(n string) bool { return strings.HasPrefix(n, "new names that begin with a dot") })
	if i < 0 {
		return ""
	}
	return line.Notes[i]
}

// TestKernelReportNamesUnknownDotNames: what a run has left in the user's directories under names that begin with a dot and that no list has.
func TestKernelReportNamesUnknownDotNames(t *testing.T) {
	cases := []struct {
		name, script string
		want         []string // below the workspace
	}{
		{"each way to make one", `echo x > .made; mkdir .dir; ln -s a .link; : > f; ln f .hard; mv f .moved; mkfifo app/.fifo`, []string{".made", ".dir", ".link", ".hard", ".moved", "app/.fifo"}},
		{"what is harmless, protected or there already", `echo x > .gitignore; mkdir -p .venv .cache .next .github/workflows; : > .env.local; : > .prettierrc.json; : > .envrc; : >> .there; : > .there.new; mv .there.new .there; true`, nil},
		{"what is gone at the end", `: > .lost; rm .lost; mkdir .d; rmdir .d; : > .a; mv .a b; ln -s b .l; rm .l`, nil},
		{"what lies in a tree of the tool's own", `mkdir t; : > t/.odd; mkdir -p node_modules/p; : > node_modules/p/.odd; git init -q r; : > r/.odd; : > .git/.odd; true`, nil},
		{"a directory that becomes a link", `mkdir t; : > t/x; mkdir .odd; rmdir .odd; ln -s t .odd`, []string{".odd"}},
	}
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				dir, p := madeWorkspace(t, w)
				if err := os.WriteFile(dir+"/.there", nil, 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir+"/.there", 0o666); err != nil {
					t.Fatal(err)
				}
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				cmd := s.Command("/bin/bash", "-c", c.script)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				note := dotNotes(cmd.Report())
				var want []string
				for _, name := range c.want {
					want = append(want, dir+"/"+name)
				}
				slices.Sort(want)
				if len(want) == 0 && note != "" || !strings.Contains(note, strings.Join(want, ", ")) {
					t.Errorf("the report says %q, want %q\n%s", note, want, out)
				}
			})
		}
		t.Run("more than there is room for", func(t *testing.T) {
			dir, p := madeWorkspace(t, w)
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.Command("/bin/bash", "-c", `for i in {1..100}; do : > .n$i; : > .n$i; done`)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if note := dotNotes(cmd.Report()); strings.Count(note, dir) != mostShown || !strings.Contains(note, " and more;") {
				t.Errorf("the report says %q", note)
			}
		})
	})
}
