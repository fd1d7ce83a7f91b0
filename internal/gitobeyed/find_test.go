package gitobeyed

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func shown(tree string) bool { return !strings.HasSuffix(tree, "/away") }

func TestIn(t *testing.T) {
	const repo = "[core]\n\trepositoryformatversion = 0\n"
	cases := []struct {
		name  string
		files map[string]string // a name that ends in a slash is a directory, a content that begins with -> a link
		top   string
		want  []string
	}{
		{"no repository", map[string]string{"w/a": "x"}, "w", nil},
		{"nothing named", map[string]string{"w/.git/HEAD": "x", "w/.git/config": repo}, "w", nil},
		{"a directory of hooks that is not there", map[string]string{"w/.git/HEAD": "x", "w/.git/config": repo + "hooksPath = ci/hooks"}, "w", []string{"w/.git/ci/hooks", "w/ci/hooks"}},
		{"on the header's line, quoted, continued, with a comment", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[CORE]HooksPath=\"a \\\nb\" ; c"}, "w", []string{"w/.git/a b", "w/a b"}},
		{"includes in includes", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[include]\npath = ../one\n[includeIf \"gitdir:/x]\"]\n path = ../two", "w/one": "[include]\npath=sub/three", "w/sub/three": "[core]\nhookspath=h"},
			"w", []string{"w/.git/h", "w/h", "w/one", "w/sub/three", "w/two"}},
		{"a name outside", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[include]\npath=../../out\n[core]\nhooksPath=/nowhere"}, "w", nil},
		{"links on the way", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[core]\nhooksPath=a/b", "w/a": "->c", "w/c/b": "->../d", "w/d/pre-commit": "->../tools/run", "w/tools/run": ""},
			"w", []string{"w/.git/a/b", "w/a", "w/c/b", "w/d", "w/d/pre-commit", "w/tools/run"}},
		{"the repository around the tree", map[string]string{"o/.git/HEAD": "x", "o/.git/config": "[core]\nhooksPath=pkg/hooks", "o/pkg/a": ""}, "o/pkg", []string{"o/pkg/hooks"}},
		{"one level below", map[string]string{"w/lib/.git/HEAD": "x", "w/lib/.git/config": "[core]\nhooksPath=h"}, "w", []string{"w/lib/.git/h", "w/lib/h"}},
		{"a bare one with a work tree's file", map[string]string{"w/.bare/HEAD": "x", "w/.bare/config": "[core]\nhooksPath=h", "w/.git": "gitdir: ./.bare\n"}, "w", []string{"w/.bare/h", "w/h"}},
		{"a linked worktree", map[string]string{"m/.git/HEAD": "x", "m/.git/config": "[core]\nhooksPath=h", "m/.git/worktrees/w/HEAD": "x", "m/.git/worktrees/w/commondir": "../..\n", "m/.git/worktrees/w/gitdir": "", "w/.git": "gitdir: ../m/.git/worktrees/w\n"}, "w", []string{"w/h"}},
		{"a worktree deep in the tree", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[core]\nhooksPath=h", "w/.git/worktrees/v/HEAD": "x", "w/.git/worktrees/v/commondir": "../..\n", "w/.git/worktrees/v/gitdir": "../../../x/y/v/.git\n", "w/x/y/v/": ""}, "w",
			[]string{"w/.git/h", "w/.git/worktrees/v/h", "w/h", "w/x/y/v/h"}},
		{"a worktree that is not shown", map[string]string{"w/.git/HEAD": "x", "w/.git/config": repo, "w/.git/worktrees/a/gitdir": "../../../../away/.git\n", "w/.git/worktrees/b/gitdir": "../../../b/.git"}, "w",
			[]string{"w/.git/worktrees/a"}},
		{"a submodule", map[string]string{"w/.git/HEAD": "x", "w/.git/modules/a/b/HEAD": "x", "w/.git/modules/a/b/config": "[core]\nworktree=../../../../a/b\nhooksPath=h", "w/a/b/": ""}, "w", []string{"w/.git/modules/a/b/h", "w/a/b/.holdfast-worktree", "w/a/b/h"}},
		{"a configuration that includes itself", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[include]\npath=config"}, "w", []string{"w/.git/config"}},
		{"commands of each kind", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[filter \"d\"]\nclean = ./s/clean %f\nsmudge = s/smudge\nprocess=s/process\nrequired=s/no\n[diff]\nexternal=s/ext\n[diff \"d\"]\ntextconv=s/text\n[merge \"m\"]\ndriver=s/merge %O\n" +
			"[core]\nfsmonitor=s/monitor\neditor=s/editor -w\npager=s/pager\nexcludesFile=s/no\n[pager]\nlog=s/log\n[gpg \"ssh\"]\nprogram=s/gpg\n[credential \"https://x\"]\nhelper=!s/helper\n[alias]\nx=!s/alias\ny=log s/no"}, "w",
			[]string{"w/s/alias", "w/s/clean", "w/s/editor", "w/s/ext", "w/s/gpg", "w/s/helper", "w/s/log", "w/s/merge", "w/s/monitor", "w/s/pager", "w/s/process", "w/s/smudge", "w/s/text"}},
		{"commands of mail, servers, submodules and git-lfs", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[uploadpack]\npackObjectsHook = ~/../w/s/pack\n[gc]\nrecentObjectsHook = s/recent\n[sendemail]\nsmtpServer = s/smtp\n[sendemail \"work\"]\nsendmailCmd = s/mail\ntoCmd = s/to\nccCmd = s/cc\nheaderCmd = s/header\n[imap]\ntunnel = s/tunnel\n" +
			"[submodule \"lib\"]\nupdate = !~/../w/s/update\n[submodule \"none\"]\nupdate = checkout\n[lfs \"customtransfer.x\"]\npath = s/transfer\n[lfs \"extension.x\"]\nclean = s/clean", "w/checkout": ""}, "w",
			[]string{"w/s/cc", "w/s/clean", "w/s/header", "w/s/mail", "w/s/pack", "w/s/recent", "w/s/smtp", "w/s/to", "w/s/transfer", "w/s/tunnel", "w/s/update"}},
		{"hooks, a configuration and attributes that are links", map[string]string{"w/.git/HEAD": "x", "w/.git/hooks/pre-commit": "->../../s/check", "w/.git/hooks/own": "x", "w/.git/hooks/post-commit": "->/nowhere", "w/.git/config": "->../conf/git", "w/conf/git": "[core]\nhooksPath=h", "w/.git/info/attributes": "->../../conf/attributes",
			"w/lib/.git/HEAD": "x", "w/lib/.git/hooks": "->../ci", "w/lib/ci/pre-push": "->run"}, "w",
			[]string{"w/.git/config", "w/.git/h", "w/.git/hooks/post-commit", "w/.git/hooks/pre-commit", "w/.git/info/attributes", "w/conf/attributes", "w/conf/git", "w/h", "w/lib/.git/hooks", "w/lib/ci", "w/lib/ci/pre-push", "w/lib/ci/run", "w/s/check"}},
		{"the user's configuration lies in the tree", map[string]string{"w/a": "", "w/git/config": "[core]\npager=p/p", "home/.gitconfig": "->../w/git/config"}, "w", []string{"w/git/config", "w/p/p"}},
		{"templates of new repositories", map[string]string{"w/a": "x", "home/.gitconfig": "[init]\ntemplateDir=~/../w/t", "w/t": "->u", "w/u/hooks/pre-commit": "->../../run", "w/run": ""}, "w", []string{"w/run", "w/t", "w/u", "w/u/config", "w/u/hooks", "w/u/hooks/pre-commit"}},
		{"a command's file and the links on its way", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[filter \"d\"]\nclean = s/clean", "w/s": "->t", "w/t/clean": ""}, "w", []string{"w/s", "w/t/clean"}},
		{"an interpreter's file at the top, and neither a directory nor what is in the git directory", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[filter \"d\"]\nclean = python3 strip.py -q src ./src HEAD none.py", "w/strip.py": "", "w/src/": ""}, "w", []string{"w/strip.py"}},
		{"an alias with a file as data", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[alias]\nnotes = !cat NOTES && s/x", "w/NOTES": ""}, "w", []string{"w/s/x"}},
		{"a command of the user's, relative and absolute", map[string]string{"w/lib/.git/HEAD": "x", "home/.gitconfig": "[core]\npager = ./p\n[alias]\nx = !$(git rev-parse --show-toplevel)/s/x $HOME/y", "w/lib/s/x": ""}, "w", []string{"w/lib/p", "w/lib/s/x", "w/p"}},
		{"a work tree that a configuration names", map[string]string{"w/.git/HEAD": "x", "w/.git/config": "[core]\nworktree=../t\npager=./p"}, "w", []string{"w/p", "w/t/.holdfast-worktree", "w/t/p"}},
		{"the user's configuration", map[string]string{"w/.git/HEAD": "x", "home/.gitconfig": "[core]\nhooksPath=own\n[include]\npath=~/x"}, "w", []string{"w/.git/own", "w/own"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("HOME", dir+"/home")
			t.Setenv("XDG_CONFIG_HOME", dir+"/none")
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text, strings.HasSuffix(name, "/"))
			}
			var got []string
			for _, p := range In(filepath.Join(dir, c.top), shown).Paths {
				got = append(got, strings.TrimPrefix(p, dir+"/"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, not %q", got, c.want)
			}
		})
	}
}

func TestLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir+"/home")
	write(t, dir+"/home/.bashrc", "->../w/bash/rc", false)
	write(t, dir+"/home/.claude/settings.json", "->../../w/plain", false) // what lies in the home's directories is not looked at
	for name, text := range map[string]string{
		".vscode": "->tools/vscode", "tools/vscode/tasks.json": "", "tools/vscode/more": "->../more", "tools/more/x": "",
		".claude/settings.json": "->../agents/claude.json", ".claude/deep/hook": "->" + dir + "/w/agents/hook", ".claude/worktrees/w/link": "->../../../far", ".claude/to": "->own", ".claude/around": "->..", ".claude/own": "",
		".mcp.json": "->absent/mcp.json", ".envrc.local": "->.envrc.d", ".cargo": "->conf/cargo", "conf/cargo/config.toml": "", "conf/cargo/credentials": "",
		"my.code-workspace": "->ws.json", ".hg/store/link": "->../../stored", "plain": "->other", ".idea": "->../out", ".zed": "->.zed",
		"lib/.git/HEAD": "x", "lib/.husky": "->scripts", "no/.husky": "->scripts",
	} {
		write(t, dir+"/w/"+name, text, false)
	}
	var got []string
	found := Links(dir+"/w", []string{".git/hooks", ".vscode", ".claude", ".mcp.json", ".envrc.*", ".cargo/config", ".cargo/config.toml", "*.code-workspace", ".hg", ".idea", ".zed", ".husky", ".bashrc"})
	for _, p := range found.Paths {
		got = append(got, strings.TrimPrefix(p, dir+"/w/"))
	}
	want := []string{".cargo", ".envrc.d", "absent/mcp.json", "agents/claude.json", "agents/hook", "bash/rc", "conf/cargo/config.toml", "lib/scripts", "tools/more", "tools/vscode", "tools/vscode/more", "ws.json"}
	if !slices.Equal(got, want) || found.Problem != "" {
		t.Errorf("%q\nnot\n%q, %s", got, want, found.Problem)
	}
}

func write(t *testing.T, name, text string, dir bool) {
	t.Helper()
	target, link := strings.CutPrefix(text, "->")
	err := os.MkdirAll(filepath.Dir(name), 0o755)
	switch {
	case err != nil:
	case dir:
		err = os.MkdirAll(name, 0o755)
	case link:
		err = os.Symlink(target, name)
	default:
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The work tree's top as a directory of hooks: the hooks are held one by one.
func TestTheTreeIsTheDirectoryOfHooks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/.git/HEAD", "x", false)
	write(t, dir+"/.git/config", "[core]\n\thooksPath = .\n", false)
	write(t, dir+"/lib/.git/HEAD", "x", false)
	write(t, dir+"/lib/.git/config", "[core]\n\thooksPath = ./\n", false)
	got := In(dir, shown).Paths
	for _, tree := range []string{dir, dir + "/lib", dir + "/.git"} {
		if !slices.Contains(got, tree+"/pre-commit") || slices.Contains(got, tree) {
			t.Errorf("%s: found %q", tree, got)
		}
	}
}

// The parser reads what git reads.
func TestSettingsAreGits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine")
	}
	for _, text := range []string{
		"[core]\nhooksPath = a", "[core]hooksPath=a", "[ core ]\n", "[core \"x\"]\nhooksPath = a b  \n", "[core.Sub]\nhooksPath = \"a;b\"#c\n",
		"[core]\n\thooksPath = a\\\n  b\n", "[core]\nhooksPath = a \"b \" c ;d\n", "[core]\nhooksPath = \\\"a\\\\b\\t\"\n\"", "# x\n;y\n[core]\n  hooksPath\n", "[core] # c\nhooksPath = a\r\n",
		"\ufeff[core]\nhooksPath = a", "[include]\npath = x\n[core]\nhooksPath = \"  a\"  b\n", "[includeIf \"a\\\"]b\"]\npath = q\n", "[core]\nhooksPath =\n", "[core]\nhooksPath = a # \"\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		write(t, file, text, false)
		out, err := exec.Command("git", "config", "-f", file, "--no-includes", "-z", "--list").Output()
		if err != nil {
			continue // an error to git: it obeys nothing of it
		}
		var want []setting
		for item := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if item == "" {
				continue
			}
			key, value, _ := strings.Cut(item, "\n")
			first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
			want = append(want, setting{strings.ToLower(key[:first] + key[last:]), value})
		}
		if got := settings(file); !slices.Equal(got, want) {
			t.Errorf("%q: read as %q; git reads %q", text, got, want)
		}
	}
}
