package presets

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGitConfigKeepsWhatIsHarmless(t *testing.T) {
	const user = "\ufeff# mine\n[User] Name = \"A \\\"B\\\" C\" ; comment\n\temail=a@b.c\n" +
		"[core]\n autocrlf = input\n hooksPath = /evil\n fsmonitor = /evil\n sshCommand = evil\n pager = evil\n editor = evil\n attributesFile = /x\n excludesFile = /x\n" +
		"[credential]\n helper = store\n[credential \"https://h\"]\n helper = !evil\n" +
		"[url \"https://tok@h/\"]\n insteadOf = h:\n[include]\n path = /x\n[includeIf \"gitdir:/\"]\n path = /x\n" +
		"[alias]\n x = !evil\n[gpg]\n program = evil\n[gpg \"ssh\"]\n program = evil\n[commit]\n gpgSign = true\n verbose\n" +
		"[init]\n templateDir = /evil\n defaultBranch = main\n[http]\n extraHeader = AUTHORIZATION: x\n proxy = http://u:p@h\n" +
		"[filter \"x\"]\n clean = evil\n[diff]\n external = evil\n algorithm = hist\\\nogram\n[diff \"x\"]\n textconv = evil\n[color \"diff\"]\n meta = blue # c\n" +
		"[color.branch]\n current = red\n[user \"x\"]\n name = no\n[user]\n signingkey = no\n[remote \"o\"]\n url = https://t@h\n[broken\n[user]\n name = \"open\n"
	want := []gitSetting{
		{"user", "name", `A "B" C`}, {"user", "email", "a@b.c"}, {"core", "autocrlf", "input"}, {"commit", "verbose", "true"},
		{"init", "defaultbranch", "main"}, {"diff", "algorithm", "histogram"}, {"color.diff", "meta", "blue"}, {"color.branch", "current", "red"},
	}
	if got := parseGitConfig(user); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, word := range []string{"evil", "tok", "helper", "/x", "u:p"} {
		if text := gitConfig(user, "/w"); strings.Contains(text, word) {
			t.Errorf("%q is in\n%s", word, text)
		}
	}
}

// Git reads what was written as it was meant.
func TestGitReadsTheGeneratedConfig(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this host")
	}
	home := t.TempDir()
	workspace := `/w/a"b\c # d`
	text := gitConfig("[user]\nname = \"  x\\\\ \\\"y\\\" # \\t\"\n[color \"diff\"]\nmeta = red\n", workspace)
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(arg ...string) string {
		t.Helper()
		cmd := exec.Command(git, arg...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", arg, err, out)
		}
		return string(out)
	}
	for key, want := range map[string]string{"user.name": "  x\\ \"y\" # \t\n", "color.diff.meta": "red\n", "safe.directory": workspace + "\n" + workspace + "/*\n"} {
		if got := run("config", "--get-all", key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	run("init", "-q", "repo")
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

func FuzzGitConfig(f *testing.F) {
	f.Add("[user]\nname = x\\\n y\n")
	f.Add("[color \"a\"]b\n[user]name=\"#\\\"")
	f.Add("[Color.]a\n[color..b]c\n[color.d.e]f\n[color.g \"h\"]i\n[color.j]k")
	f.Fuzz(func(t *testing.T, text string) {
		first := parseGitConfig(text)
		for _, s := range first {
			if !gitHarmless(s.section + "." + s.key) {
				t.Errorf("%v is not harmless", s)
			}
		}
		again := parseGitConfig(gitConfig(text))
		if fmt.Sprintf("%q", again) != fmt.Sprintf("%q", first) {
			t.Errorf("%q\nreads %q\nagain %q", text, first, again)
		}
	})
}
