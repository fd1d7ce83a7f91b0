package gittext

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// accepts reports whether the configuration next may replace now, where directories outside of /ws are there.
func accepts(t testing.TB, now, next string, modules bool) bool {
	t.Helper()
	x, y := &Text{Modules: modules}, &Text{Modules: modules}
	x.N, y.N = uint(copy(x.B[:], next)), uint(copy(y.B[:], now))
	x.DropWorktree(y)
	x.Rewind()
	y.Rewind()
	for {
		more := nextForeign(x)
		if more != nextForeign(y) || more && !SameLine(x, y) {
			return false
		}
		if !more {
			return true
		}
	}
}

// nextForeign goes to the next line that is not harmless, as the supervisor does with the directories that it looks at.
func nextForeign(t *Text) bool {
	for t.Next() {
		local := ""
		switch t.Judge() {
		case Harmless:
			continue
		case IfDirectory:
			local = string(t.B[t.Local:t.LocalEnd])
		}
		if !path.IsAbs(local) || path.Clean(local) != local || strings.HasPrefix(local+"/", "/ws/") {
			return true
		}
	}
	return false
}

const plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

func TestConfigReplaced(t *testing.T) {
	owned := plain + "\tfsmonitor = mine\n[alias]\n\tst = !status\n[include]\n\tpath = x\n"
	cases := []struct {
		name, now, next string
		want            bool
	}{
		{"what git init writes", "", plain, true},
		{"nothing", plain, "", true},
		{"an identity", plain, plain + "[user]\n\tname = A \"B\" C\n\temail = a@b\n", true},
		{"a remote and a branch", plain, plain + "[remote \"origin\"]\n\turl = https://h/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"master\"]\n\tremote = origin\n\tmerge = refs/heads/master\n", true},
		{"a branch of this repository", plain, plain + "[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/m\n", true},
		{"comments and blank lines", plain, "# hello\n\n; you\n" + plain, true},
		{"an identity beside the user's own settings", owned, strings.Replace(owned, "\tbare", "\tsymlinks = true\n\tbare", 1) + "[user]\n\tname = x\n", true},
		{"how it pulls, pushes and merges", plain, plain + "[pull]\n\tff = only\n[push]\n\tautoSetupRemote = true\n[fetch]\n\tprune = true\n[merge]\n\tconflictStyle = zdiff3\n", true},
		{"a driver that merges", plain, plain + "[merge \"x\"]\n\tdriver = evil\n", false},
		{"a tool that merges", plain, plain + "[merge]\n\ttool = evil\n", false},
		{"what resolves conflicts by itself", plain, plain + "[rerere]\n\tenabled = true\n", false},
		{"a setting of the user's changed", owned, strings.Replace(owned, "mine", "evil", 1), false},
		{"a setting of the user's removed", owned, strings.Replace(owned, "\tfsmonitor = mine\n", "", 1), false},
		{"a setting of the user's moved to another section", owned, strings.Replace(owned, "[alias]\n", "[alias]\n[core]\n", 1), false},
		{"a setting of the user's doubled", owned, owned + "[alias]\n\tst = !status\n", false},
		{"a program", plain, plain + "\tfsmonitor = evil\n", false},
		{"a program in other letters", plain, plain + "\tFsMonitor=evil\n", false},
		{"hooks elsewhere", plain, plain + "\thooksPath = /x\n", false},
		{"an include", plain, plain + "[include]\n\tpath = x\n", false},
		{"a conditional include", plain, plain + "[includeIf \"gitdir:/\"]\n\tpath = x\n", false},
		{"an alias", plain, plain + "[alias]\n\tx = !evil\n", false},
		{"a filter", plain, plain + "[filter \"x\"]\n\tclean = evil\n", false},
		{"a credential helper", plain, plain + "[credential]\n\thelper = !evil\n", false},
		{"an extension that reads another file", plain, plain + "[extensions]\n\tworktreeConfig = true\n", false},
		{"an update command", plain, plain + "[submodule \"x\"]\n\tupdate = !evil\n", false},
		{"a key behind the header", plain, plain + "[core] fsmonitor = evil\n", false},
		{"a harmless key behind the header", plain, "[core] bare = false\n", false},
		{"an old subsection", plain, plain + "[remote.x]\n\turl = https://h\n", false},
		{"a line that goes on", plain, plain + "[user]\n\tname = a\\\n[core]\n\tfsmonitor = evil\n", false},
		{"a quote that stays open", plain, plain + "[user]\n\tname = \"a\n\tfsmonitor = evil\n", false},
		{"a carriage return", plain, plain + "[user]\r\n", false},
		{"a NUL byte", plain, plain + "[user]\n\tname = a\x00\n", false},
		{"a header that hides in a value", plain, plain + "[user]\n\tname = x [core] fsmonitor = evil\n", true},
		{"a key without a value", plain, plain + "\tbare\n", false},
		{"a subsection where there is none", plain, plain + "[core \"x\"]\n\tbare = true\n", false},
		{"a URL that runs a program", plain, plain + "[remote \"o\"]\n\turl = ext::sh -c evil\n", false},
		{"a URL of another helper", plain, plain + "[remote \"o\"]\n\turl = foo::bar\n", false},
		{"a URL that is an option", plain, plain + "[remote \"o\"]\n\turl = --upload-pack=evil\n", false},
		{"a URL whose host is an option", plain, plain + "[remote \"o\"]\n\turl = ssh://-oProxyCommand=evil/x\n", false},
		{"a URL of a repository that the tool writes", plain, plain + "[remote \"o\"]\n\turl = /ws/evil\n", false},
		{"the root itself", plain, plain + "[remote \"o\"]\n\turl = /ws\n", false},
		{"the same in disguise", plain, plain + "[remote \"o\"]\n\turl = //ws/evil\n", false},
		{"by a dot", plain, plain + "[remote \"o\"]\n\turl = /./ws/evil\n", false},
		{"by dots", plain, plain + "[remote \"o\"]\n\turl = /srv/../ws/evil\n", false},
		{"a URL of a file", plain, plain + "[remote \"o\"]\n\turl = file:///ws/evil\n", false},
		{"a relative repository", plain, plain + "[remote \"o\"]\n\turl = evil\n", false},
		{"a relative repository with a colon below", plain, plain + "[remote \"o\"]\n\turl = evil/a:b\n", false},
		{"a repository outside the roots", plain, plain + "[remote \"o\"]\n\turl = /srv/git/x.git\n", true},
		{"ssh to this machine", plain, plain + "[remote \"o\"]\n\turl = ssh://me@localhost/ws/evil\n", false},
		{"the same as host and path", plain, plain + "[remote \"o\"]\n\turl = 127.0.0.1:/ws/evil\n", false},
		{"a process's root", plain, plain + "[remote \"o\"]\n\turl = /proc/self/root/ws/evil\n", false},
		{"git init --shared", "", plain + "\tsharedrepository = 1\n[receive]\n\tdenyNonFastforwards = true\n", true},
		{"a repository of the group", plain, plain + "\tsharedRepository = group\n", true},
		{"a repository that the group may read", plain, plain + "\tsharedRepository = 0640\n", true},
		{"a repository of all users", plain, plain + "\tsharedRepository = world\n", false},
		{"a repository of everybody", plain, plain + "\tsharedRepository = Everybody\n", false},
		{"git init --shared=all", "", plain + "\tsharedrepository = 2\n", false},
		{"a repository that all may write by its mode", plain, plain + "\tsharedRepository = 0666\n", false},
		{"a repository of all users, in quotes", plain, plain + "\tsharedRepository = \"all\"\n", false},
		{"a host and path", plain, plain + "[remote \"o\"]\n\turl = git@github.com:a/b.git\n", true},
		{"a push URL", plain, plain + "[remote \"o\"]\n\tpushurl = https://h\n", false},
		{"a branch that follows a directory", plain, plain + "[branch \"x\"]\n\tremote = evil\n", false},
		{"a branch that follows a remote without a URL", plain, plain + "[remote \"evil\"]\n\tfetch = x\n[branch \"x\"]\n\tremote = evil\n", false},
		{"a work tree elsewhere", plain, plain + "\tworktree = ../../home\n", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := accepts(t, c.now, c.next, false); got != c.want {
				t.Errorf("accepted: %v\n%s", got, c.next)
			}
		})
	}
}

// TestSubmoduleWorkTree: a submodule's work tree is taken out of what the tool writes; what stands there stays as it is.
func TestSubmoduleWorkTree(t *testing.T) {
	const tree = "[core]\n\tbare = false\n\tworktree = ../../../lib\n\tfilemode = true\n"
	x, y := &Text{Modules: true}, &Text{Modules: true}
	x.N = uint(copy(x.B[:], tree+"[core]\n\tworktree = /home/u\n"))
	if x.DropWorktree(y); string(x.B[:x.N]) != "[core]\n\tbare = false\n\tfilemode = true\n[core]\n" {
		t.Errorf("what is left: %q", x.B[:x.N])
	}
	for _, c := range []struct {
		name, now, next string
		modules, want   bool
	}{
		{"a submodule's is taken out", plain, tree, true, true},
		{"it stays", tree, tree + "[user]\n\tname = x\n", true, true},
		{"it is changed", tree, strings.Replace(tree, "lib", "lnk", 1), true, false},
		{"it is removed", tree, plain, true, false},
		{"no submodule's", plain, tree, false, false},
	} {
		if got := accepts(t, c.now, c.next, c.modules); got != c.want {
			t.Errorf("%s: accepted %v", c.name, got)
		}
	}
}

// TestRandomConfigs puts configurations together from fragments. Each may replace itself; and of those that may stand
// where none stood, git itself reads harmless keys alone.
func TestRandomConfigs(t *testing.T) {
	kerneltest.Long(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	parts := []string{"[core]\n", "[core]", "[user]\n", "[remote \"o\"]\n", "[a.b]\n", "\n", "\n", "\n", "\t", " ", "fsmonitor = x\n", "name = x", "name = \"x", "url = https://h/x\n",
		"bare", "=", "\"", "\\", "\\\n", "#", ";", "\r", "\x00", "]", "[", "\xef\xbb\xbf"}
	r := rand.New(rand.NewPCG(3, 4))
	file := filepath.Join(t.TempDir(), "config")
	asked := 0
	for range 6000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		next := b.String()
		if !accepts(t, next, next, false) {
			t.Fatalf("%q may not replace itself", next)
		}
		if asked > 150 || !strings.ContainsAny(next, "=") || !accepts(t, "", next, false) {
			continue
		}
		asked++
		if err := os.WriteFile(file, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "-f", file, "--name-only", "--list").Output()
		if err != nil {
			continue // git reads nothing of it
		}
		for key := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
			if key != "" && key != "core.bare" && key != "user.name" && key != "remote.o.url" {
				t.Errorf("accepted %q, where git reads %s", next, key)
			}
		}
	}
	if asked < 20 {
		t.Errorf("git was asked %d times only", asked)
	}
}
