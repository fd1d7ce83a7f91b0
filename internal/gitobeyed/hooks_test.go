package gitobeyed

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each relative core.hooksPath counts in every work tree, whatever configuration has it.
func TestInReturnsRelativeDirectoriesOfHooks(t *testing.T) {
	const head, names = "ref: refs/heads/main\n", "[core]\n\thooksPath = "
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"none", map[string]string{"w/.git/HEAD": head, "w/.git/config": "[core]\n"}, nil},
		{"a repository's", map[string]string{"w/.git/HEAD": head, "w/.git/config": names + "./scripts//hooks/\n"}, []string{"scripts/hooks"}},
		{"of the repository around", map[string]string{".git/HEAD": head, ".git/config": names + "a/b\n", "w/x": ""}, []string{"a/b"}},
		{"one level below", map[string]string{"w/lib/.git/HEAD": head, "w/lib/.git/config": names + "a/b\n"}, []string{"a/b"}},
		{"a submodule's", map[string]string{"w/.git/HEAD": head, "w/.git/modules/m/HEAD": head, "w/.git/modules/m/config": names + "a/b\n"}, []string{"a/b"}},
		{"of one work tree", map[string]string{"w/.git/HEAD": head, "w/.git/config.worktree": names + "own/hooks\n"}, []string{"own/hooks"}},
		{"of a linked worktree", map[string]string{"w/.git/HEAD": head, "w/.git/worktrees/v/HEAD": head, "w/.git/worktrees/v/commondir": "../..\n", "w/.git/worktrees/v/gitdir": "/none/.git\n", "w/.git/worktrees/v/config.worktree": names + "own/hooks\n"}, []string{"own/hooks"}},
		{"of an included file", map[string]string{"w/.git/HEAD": head, "w/.git/config": "[includeIf \"gitdir:/x/\"]\n\tpath = ../more\n", "w/more": names + "more/hooks\n"}, []string{"more/hooks"}},
		{"the user's, where no repository is", map[string]string{"home/.gitconfig": "[include]\n\tpath = ~/more\n" + names + "user/hooks\n", "home/more": names + "more\n", "w/x": ""}, []string{"more", "user/hooks"}},
		{"of XDG_CONFIG_HOME", map[string]string{"xdg/git/config": names + "x/hooks\n", "w/x": ""}, []string{"x/hooks"}},
		{"of GIT_CONFIG_GLOBAL", map[string]string{"global": names + "g/hooks\n", "w/x": ""}, []string{"g/hooks"}},
		{"absolute, or of a home", map[string]string{"w/.git/HEAD": head, "w/.git/config": names + "/a/b\n" + names + "~/h\n" + names + "~u/h\n" + names + "%(prefix)/h\n" + names + "\n"}, nil},
		{"through directories above", map[string]string{"w/.git/HEAD": head, "w/.git/config": names + "../shared/hooks\n" + names + "a/../b\n"}, []string{"b", "shared/hooks"}},
		{"the work tree", map[string]string{"w/.git/HEAD": head, "w/.git/config": names + ".\n"}, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"HOME": "/home", "XDG_CONFIG_HOME": "/xdg", "GIT_CONFIG_GLOBAL": "/global"} {
				t.Setenv(name, dir+value)
			}
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text, false)
			}
			if got := In(dir+"/w", shown).Hooks; !slices.Equal(got, c.want) {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestNamesOfADirectoryOfHooks(t *testing.T) {
	for _, c := range []struct {
		dir   string
		whole bool
		name  string // one of the names
	}{
		{"scripts/hooks", true, "scripts/hooks"}, {".hooks", true, ".hooks"}, {".git/own", true, ".git/own"}, {"a/hooks", true, "a/hooks"},
		{"hooks", false, "hooks/pre-commit"}, {"scripts", false, "scripts/post-index-change"}, {".git", false, ".git/pre-commit"},
		{"", false, "pre-commit"}, {"a*/b", false, "pre-commit"}, {strings.Repeat("a/", 16) + "b", false, "pre-commit"}, {"a/" + strings.Repeat("b", 256), false, "pre-commit"},
	} {
		got := Names(c.dir)
		if !slices.Contains(got, c.name) || (len(got) == 1) != c.whole || !c.whole && len(got) != len(hookNames) {
			t.Errorf("%.40q: %.200q", c.dir, got)
		}
	}
}
