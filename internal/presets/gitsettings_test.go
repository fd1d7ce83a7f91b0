package presets

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A gitUser has files in ROOT/home/me, and a workspace in ROOT/home/me/job/p.
type gitUserCase struct {
	name  string
	files map[string]string // below ROOT; a directory ends in "/", "-> " begins a link
	env   map[string]string
	want  []string // "key=value" that git says in the workspace with the tool's home, by git config --get-all
	not   []string // what is nowhere in the tool's home
	left  []string // what the note says; nil: there is no note
}

// TestGitInTheToolsHomeIsSetAsOutside asks git itself, in a home made of Files.Make.
func TestGitInTheToolsHomeIsSetAsOutside(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git, which is not installed")
	}
	const me = "[user]\n\tname = Me\n\temail = me@home\n"
	for _, c := range []gitUserCase{
		{name: "the identity", files: map[string]string{".gitconfig": me}, want: []string{"user.name=Me", "user.email=me@home"}},
		{name: "both files", files: map[string]string{".gitconfig": "[user]\nemail=last\n", ".config/git/config": me}, want: []string{"user.name=Me", "user.email=me@home,last"}},
		{name: "XDG_CONFIG_HOME", files: map[string]string{"x/git/config": me}, env: map[string]string{"XDG_CONFIG_HOME": "ROOT/home/me/x"}, want: []string{"user.email=me@home"}},
		{name: "GIT_CONFIG_GLOBAL", files: map[string]string{"x": me, ".gitconfig": "[user]\nemail=not\n"}, env: map[string]string{"GIT_CONFIG_GLOBAL": "ROOT/home/me/x"}, want: []string{"user.email=me@home"}},
		{name: "GIT_CONFIG_SYSTEM", files: map[string]string{"x": me}, env: map[string]string{"GIT_CONFIG_SYSTEM": "ROOT/home/me/x"}, want: []string{"user.email=me@home"}},
		{name: "GIT_CONFIG_COUNT", files: map[string]string{".gitconfig": me}, env: map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "User.Email", "GIT_CONFIG_VALUE_0": "last", "GIT_CONFIG_KEY_1": "url.https://u:TOKEN@h/.insteadOf", "GIT_CONFIG_VALUE_1": "h:"},
			want: []string{"user.email=me@home,last", "url.https://h/.insteadof=h:"}, not: []string{"TOKEN"}, left: []string{"url.insteadof, whose URL"}},
		{name: "an include, in place", files: map[string]string{".gitconfig": me + "[include]\npath=sub/more\n[user]\nemail=last\n", "sub/more": "[user]\nemail=more\n[include]\npath=deeper\n", "sub/deeper": "[core]\nabbrev=9\n"},
			want: []string{"user.email=me@home,more,last", "core.abbrev=9"}},
		{name: "an include of itself", files: map[string]string{".gitconfig": me + "[include]\npath=.gitconfig\n"}, left: []string{"includes more than 10"}},
		{name: "includeIf gitdir", files: map[string]string{".gitconfig": me + "[includeIf \"gitdir:~/job/\"]\npath=.gitconfig-work\n[includeIf \"gitdir:~/play/\"]\npath=.gitconfig-play\n", ".gitconfig-work": "[user]\nemail=me@work\n", ".gitconfig-play": "[user]\nemail=me@play\n"},
			want: []string{"user.email=me@home,me@work"}},
		{name: "includeIf relative to the file, through a link", files: map[string]string{".gitconfig": me + "[include]\npath=dot/c\n", "dot": "-> job", "job/c": "[includeIf \"gitdir/i:./P/.git\"]\npath=d\n", "job/d": "[user]\nemail=me@work\n"}, want: []string{"user.email=me@home,me@work"}},
		{name: "includeIf onbranch and hasconfig", files: map[string]string{".gitconfig": me + "[includeIf \"onbranch:topic\"]\npath=t\n[includeIf \"hasconfig:remote.*.url:https://h/**\"]\npath=h\n", "t": "[user]\nemail=topic\n", "h": "[core]\nabbrev=8\n"},
			want: []string{"user.email=me@home,topic", "core.abbrev=8"}},
		{name: "filters and drivers", files: map[string]string{".gitconfig": "[filter \"lfs\"]\nclean = git-lfs clean -- %f\nsmudge = git-lfs smudge -- %f\nprocess = git-lfs filter-process\nrequired\n[diff \"x\"]\ntextconv = x\n[merge \"m\"]\ndriver = m %O %A %B\n[diff]\nexternal = d\n[alias]\nx = !git log\n"},
			want: []string{"filter.lfs.clean=git-lfs clean -- %f", "filter.lfs.process=git-lfs filter-process", "filter.lfs.required=", "diff.x.textconv=x", "merge.m.driver=m %O %A %B", "diff.external=d", "alias.x=!git log"}},
		{name: "quotes and comments", files: map[string]string{".gitconfig": "\ufeff[user]\nname = \"  x\\\\ \\\"y\\\" # \\t\" ; c\nemail = a\\\n b\n[color \"a \\\"b\"]\nui = 1\n"}, want: []string{"user.name=  x\\ \"y\" # \t", "user.email=a b"}},
		{name: "ignore and attributes", files: map[string]string{".config/git/ignore": "IGNORED\n", ".config/git/attributes": "ATTRS\n"}, want: []string{"core.excludesfile<IGNORED", "core.attributesfile<ATTRS"}},
		{name: "named ignore files", files: map[string]string{".gitconfig": "[core]\nexcludesFile = ~/x/ig\nattributesFile = ROOT/at\n", "x/ig": "IGNORED\n", "../../at": "ATTRS\n"}, want: []string{"core.excludesfile<IGNORED", "core.attributesfile<ATTRS"}},
		{name: "a secret as an ignore file", files: map[string]string{".gitconfig": "[core]\nexcludesFile = ~/.ssh/id\n", ".ssh/id": "TOKEN\n"}, not: []string{"TOKEN"}, left: []string{"core.excludesfile", "may not be copied"}},
		{name: "a link of the workspace's to a secret", files: map[string]string{".gitconfig": "[core]\nexcludesFile = ~/job/p/ig\n", "job/p/ig": "-> ../../notes", "notes": "TOKEN\n"}, not: []string{"TOKEN"}, left: []string{"core.excludesfile"}},
		{name: "a configuration in the workspace", files: map[string]string{".gitconfig": me + "[include]\npath=job/p/c\n", "job/p/c": "[user]\nemail=TOKEN\n"}, want: []string{"user.email=me@home"}, not: []string{"TOKEN"}, left: []string{"/job/p/c, which a tool could have written"}},
		{name: "secrets", files: map[string]string{".gitconfig": "[credential]\nhelper = TOKEN\n[credential \"https://TOKEN\"]\nhelper = x\n[http]\nextraHeader = \"Authorization: TOKEN\"\nproxy = http://TOKEN\n[http \"https://h\"]\nextraheader = TOKEN\ncookieFile = TOKEN\n" +
			"[url \"https://TOKEN@h/\"]\ninsteadOf = https://h/\n[remote \"o\"]\nurl = https://u:TOKEN@h/r\n[core]\nsshCommand = ssh -i TOKEN\naskPass = TOKEN\n[sendemail]\nsmtpPass = TOKEN\n[lfs]\nurl = https://u:TOKEN@h/l\n[user]\npassword = TOKEN\n[alias]\nx = !curl -H ghp_TOKENTOKEN\n[includeIf \"hasconfig:remote.*.url:https://u:TOKEN@h/\"]\npath = x\n",
			"x": "[core]\nabbrev=9\n"},
			want: []string{"url.https://h/.insteadof=https://h/", "remote.o.url=https://h/r", "lfs.url=https://h/l"}, not: []string{"TOKEN"}, left: []string{"url.insteadof", "user.password", "alias.x", "remote.url", "lfs.url"}},
		{name: "signing", files: map[string]string{".gitconfig": "[commit]\ngpgSign = true\n[gpg]\nprogram = TOKEN\n[gpg \"ssh\"]\nprogram = TOKEN\n[user]\nsigningKey = TOKEN\n"}, not: []string{"TOKEN", "gpgsign"}, left: []string{"commit.gpgsign: nothing is signed inside"}},
		{name: "signing that is off", files: map[string]string{".gitconfig": "[commit]\ngpgSign = false\n"}},
		{name: "other programs", files: map[string]string{".gitconfig": me + "[delta]\nnavigate = true\n[github]\ntoken = TOKEN\n"}, want: []string{"user.name=Me"}, not: []string{"TOKEN", "navigate"}, left: []string{"delta.*", "github.*"}},
		{name: "hooks of the user's", files: map[string]string{".gitconfig": "[core]\nhooksPath = ~/.githooks\n", ".githooks/": ""}, want: []string{"core.hookspath=ROOT/home/me/.githooks"}, left: []string{"core.hookspath", "is not shown inside"}},
		{name: "an include of the environment", files: map[string]string{"x": me}, env: map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "include.path", "GIT_CONFIG_VALUE_0": "ROOT/home/me/x"}, want: []string{"user.email=me@home"}},
		{name: "a template of repositories, and a key as an authority", files: map[string]string{".gitconfig": "[init]\ntemplateDir = ~/t\n[http]\nsslCAInfo = ~/ca\n", "ca": "-----BEGIN PRIVATE KEY-----\nTOKEN\n"}, not: []string{"TOKEN"}, left: []string{"init.templatedir", "http.sslcainfo"}},
		{name: "what git cannot read", files: map[string]string{".gitconfig": "[user\n", ".config/git/config": me}, want: []string{"user.name=Me"}, left: []string{".gitconfig, which git cannot read"}},
		{name: "a git of the workspace's", files: map[string]string{".gitconfig": me + "[user]\nname=third\n", "job/p/git": "#!/bin/sh\ntouch ROOT/ran\n"}, env: map[string]string{"PATH": "ROOT/home/me/job/p:/usr/bin"}, want: []string{"user.email=me@home"}},
		{name: "without git", files: map[string]string{".gitconfig": me + "[user]\nname=other\n"}, env: map[string]string{"PATH": "ROOT/home/me/job/p"}, left: []string{"PATH has git in no place that"}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, git) })
	}
}

func (c gitUserCase) run(t *testing.T, git string) {
	root := fixture.Tree(t, "home/me/job/p/")
	replaced := func(s string) string { return strings.ReplaceAll(s, "ROOT", root) }
	for name, text := range c.files {
		p := filepath.Join(root, "home/me", name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if target, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(target, p)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else if err == nil {
			err = os.WriteFile(p, []byte(replaced(text)), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	work := root + "/home/me/job/p"
	run := func(home, dir string, arg ...string) (string, error) {
		cmd := exec.Command(git, arg...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		return string(out), err
	}
	if _, err := run("/nowhere", work, "init", "-q", "-b", "topic"); err != nil {
		t.Fatal(err)
	}
	for _, set := range [][2]string{{"remote.x.url", "https://h/r"}, {"core.fsmonitor", "touch " + root + "/ran"}, {"core.pager", "touch " + root + "/ran"}} {
		if _, err := run("/nowhere", work, "config", set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": root + "/home/me", "PATH": filepath.Dir(git), "GIT_CONFIG_NOSYSTEM": "1"}
	for name, value := range c.env {
		env[name] = replaced(value)
		if name == "GIT_CONFIG_SYSTEM" {
			delete(env, "GIT_CONFIG_NOSYSTEM")
		}
	}
	p := New(work, func(name string) string { return env[name] }, nil).Policy(true)
	if _, err := os.Lstat(root + "/ran"); err == nil {
		t.Error("something of the workspace's was executed")
	}
	home := t.TempDir()
	all := ""
	for _, f := range p.Files.Make {
		at := home + strings.TrimPrefix(f.Path, root+"/home/me")
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(f.Data), 0o644); err != nil {
			t.Fatal(err)
		}
		all += f.Data
	}
	for _, want := range c.want {
		key, value, isValue := strings.Cut(replaced(want), "=")
		if strings.Contains(want, "<") {
			key, value, _ = strings.Cut(want, "<")
		}
		if i := strings.LastIndex(replaced(want), "="); strings.HasPrefix(want, "url.") {
			key, value = replaced(want)[:i], replaced(want)[i+1:]
		}
		got, err := run(home, work, "config", "--includes", "--get-all", key)
		got = strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", ",")
		if !isValue || strings.Contains(want, "<") {
			file, _ := run(home, work, "config", "--path", "--get", key)
			text, _ := os.ReadFile(strings.TrimSpace(file))
			got = strings.TrimSpace(string(text))
		}
		if err != nil || got != value {
			t.Errorf("%s is %q, want %q (%v) in\n%s", key, got, value, err, all)
		}
	}
	for _, word := range c.not {
		if strings.Contains(all, word) {
			t.Errorf("%s is in\n%s", word, all)
		}
	}
	i := slices.IndexFunc(p.Notes, func(n policy.Note) bool { return n.At == "Files.Make" })
	if (i >= 0) != (c.left != nil) {
		t.Errorf("notes %v, want %q", p.Notes, c.left)
	}
	for _, what := range c.left {
		if i >= 0 && !strings.Contains(p.Notes[i].Why, what) {
			t.Errorf("the note %q does not have %q", p.Notes[i].Why, what)
		}
	}
	if i >= 0 && strings.Contains(p.Notes[i].Why, "TOKEN") {
		t.Errorf("the note has a secret: %q", p.Notes[i].Why)
	}
	if _, err := run(home, home, "init", "-q", "repo"); err != nil {
		t.Errorf("git init: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(home, "repo/.git/hooks")); !os.IsNotExist(err) {
		t.Errorf("git init made hooks: %v", err)
	}
}

func TestGoSettingsKeepNoSecretAndNoProgram(t *testing.T) {
	got := goSettings("GOPRIVATE=older\nGOFLAGS=-mod=mod\r\nGOPROXY=https://u:p@proxy\nGOPRIVATE=h.example\nGOAUTH=x\nGOFLAGS=-toolexec=evil\nCC=evil\n#x\nGOSUMDB=https://u:p@h\n")
	if want := map[string]string{"GOFLAGS": "-mod=mod", "GOPRIVATE": "h.example"}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
