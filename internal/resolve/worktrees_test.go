package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestTheDeepestRuleDecidesAboutAWorktreesRepository: home/me/src/wt is a linked worktree of home/me/src/r.
func TestTheDeepestRuleDecidesAboutAWorktreesRepository(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := root + "/home/me/src/"
	for name, text := range map[string]string{"r/.git/HEAD": "ref: refs/heads/main\n", "r/.git/objects/": "", "r/.git/refs/": "", "r/.git/worktrees/wt/HEAD": "ref: refs/heads/side\n",
		"r/.git/worktrees/wt/commondir": "../..\n", "r/.git/worktrees/wt/gitdir": src + "wt/.git\n", "wt/.git": "gitdir: " + src + "r/.git/worktrees/wt\n", "wt/sub/": ""} {
		if err := os.MkdirAll(filepath.Dir(src+name+"x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(src+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name, worktree string
		files          policy.Files
		want           string // the class of the note, and what is added to Write and Read
	}{
		{"a preset's, in the user's home", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Private: []string{"home/me"}, Hide: []string{"home"}}, "granted home/me/src/r/.git |"},
		{"a preset's, in another's home", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Hide: []string{"home"}}, "granted home/me/src/r/.git |"},
		{"in a sub-directory", "wt/sub", policy.Files{Write: []string{"home/me/src/wt/sub"}, Private: []string{"home/me"}, Hide: []string{"home"}}, "granted home/me/src/r/.git | home/me/src/wt"},
		{"to read", "wt", policy.Files{Read: []string{"home/me/src/wt"}, Hide: []string{"home"}}, "granted | home/me/src/r/.git"},
		{"the caller hides both", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Hide: []string{"home", "home/me/src"}}, "not granted |"},
		{"the caller hides the home", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Hide: []string{"home", "home/me"}}, "not granted |"},
		{"the caller hides the repository", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Private: []string{"home/me"}, Hide: []string{"home/me/src/r"}}, "not granted |"},
		{"the caller hides the work tree around", "wt/sub", policy.Files{Write: []string{"home/me/src/wt/sub"}, Private: []string{"home/me"}, Hide: []string{"home/me/src/wt"}}, "not granted |"},
		{"hidden in what can be written", "wt", policy.Files{Write: []string{"home/me/src"}, Hide: []string{"home/me/src/r"}}, "not granted |"},
		{"hidden around what the caller shows", "wt", policy.Files{Write: []string{"home/me/src/wt", "home/me/src/r"}, Hide: []string{"home/me/src"}}, "|"},
		{"the repository alone is hidden", "wt", policy.Files{Write: []string{"home/me/src/wt"}, Hide: []string{"home/me/src/r/.git"}}, "not granted |"},
		{"read alone in what can be written", "wt", policy.Files{Write: []string{"home/me/src"}, Read: []string{"home/me/src/r"}}, "granted home/me/src/r/.git |"},
		{"the work tree is hidden", "wt", policy.Files{Write: []string{"home/me/src"}, Hide: []string{"home/me/src/wt", "home/me/src/r"}}, "not granted |"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.files
			for _, list := range []*[]string{&f.Read, &f.Write, &f.Private, &f.Hide} {
				for i, p := range *list {
					(*list)[i] = root + "/" + p
				}
			}
			read, write := slices.Clone(f.Read), slices.Clone(f.Write)
			f.Worktrees = []string{src + tt.worktree}
			p := policy.Policy{Files: f}
			GrantWorktrees(&p, func(string, bool) (string, string) { return "", "" }, []string{root + "/home"})
			var got []string
			for _, n := range p.Notes {
				got = append(got, n.Class)
			}
			got = append(append(append(got, p.Files.Write[len(write):]...), "|"), p.Files.Read[len(read):]...)
			if text := strings.ReplaceAll(strings.Join(got, " "), root+"/", ""); text != tt.want {
				t.Errorf("got %q, want %q; %v", text, tt.want, p.Notes)
			}
		})
	}
}
