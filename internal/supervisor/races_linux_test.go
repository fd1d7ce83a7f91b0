package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelRaces runs programs that change, from a second thread, what a call's path says or leads to.
func TestKernelRaces(t *testing.T) {
	kerneltest.Long(t)
	cases := []struct{ name, script string }{
		{"the path is changed while it is read", `"$SELF" flip`},
		{"a directory becomes a link while a file is made in it", `"$SELF" swap`},
		{"a descriptor becomes a protected file while /dev/tty is opened", `"$SELF" swapterminal .git/hooks/pre-commit`},
		{"a descriptor becomes the supervisor's memory while /dev/tty is opened", `"$SELF" swapterminal /proc/$GUARD_SUPERVISOR/mem`},
		{"the working directory becomes one with protected names", `"$SELF" swapcwd .git/hooks planted`},
		{"the source of a configuration stays open for writing", `cp .git/config n; echo '[user]' >>n; exec 5>>n; mv n .git/config; echo '[core] pager = evil' >&5; ! grep evil .git/config; grep -q user .git/config`},
		{"a second name of the source", `cp .git/config n; ln n n2; mv n .git/config; echo '[core] pager = evil' >>n2; ! grep evil .git/config`},
		{"the source is a link", `cp .git/config n; ln -s n l; ! mv l .git/config; [ ! -L .git/config ]`},
		{"a .git file with another content", `mkdir w; echo 'gitdir: /tmp/evil' >w/.git; echo evil >w/.git; printf 'gitdir: ../.git' >w/.git; : >w/.git; : >x; : >y; [ ! -e w/.git ]`},
		{"a .git file that leads to no repository's part", `mkdir -p w evil/hooks; : >evil/hooks/x; echo 'gitdir: ../evil' >w/.git; : >x; ln -s ../evil lnk; echo 'gitdir: ../lnk' >w/.git; : >x; [ ! -e w/.git ]`},
		{"a .git file that leads to a worktree's part", `mkdir -p w .git/worktrees/w; echo 'gitdir: ../.git/worktrees/w' >w/.git; : >x; [ -f w/.git ]; rm w/.git; [ ! -e w/.git ]`},
		{"a .git file is written with the canonical path", `mkdir -p w/v .git/worktrees/w .git/modules/w/d; echo 'gitdir: ../../.git/modules/w/d/../../../worktrees/w' >w/v/.git; : >x; [ "$(cat w/v/.git)" = 'gitdir: ../../.git/worktrees/w' ]
			rm w/v/.git; echo "gitdir: $PWD/w/../.git//worktrees/./w/" >w/v/.git; : >x; [ "$(cat w/v/.git)" = "gitdir: $PWD/.git/worktrees/w" ]`},
		{"a .git file is bent after it was checked", `mkdir -p s evil/sub .git/modules/w/d; echo 'gitdir: ../.git/modules/w/d/..' >s/.git; : >x; rmdir .git/modules/w/d; ln -s "$PWD/evil/sub" .git/modules/w/d || mkdir .git/modules/w/d
			[ ! -e s/.git ] || [ "$(cd -P s/$(sed 's/gitdir: //' s/.git); pwd -P)" = "$PWD/.git/modules/w" ]`},
		{"a worktree's commondir says one thing only", `mkdir -p .git/worktrees/w; echo /evil >.git/worktrees/w/commondir; [ "$(cat .git/worktrees/w/commondir)" = ../.. ]; ! mkdir .git/worktrees/w/hooks; ! : >.git/worktrees/w/config`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, hooked)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
				if b, err := os.ReadFile(filepath.Join(dir, ".git/hooks/pre-commit")); err != nil || string(b) != "h\n" {
					t.Errorf("the hook: %q, %v", b, err)
				}
			})
		}
	}
}

func TestKernelHidden(t *testing.T) {
	kerneltest.Long(t)
	const prepare = `echo secret >.env; mkdir d; echo secret >d/.env.local; echo plain >.environment`
	const try = `cat .env; cat d/.env.local; cat ./d/../.env; exec 5<.env && cat <&5; ln -s .env l; cat l; ln .env m; mv .env n; cat n
		cp -r d e; cat e/.env.local; python3 -c 'import os; fd=os.open(".env", os.O_PATH); print(open("/proc/self/fd/%d" % fd).read())'; cat /proc/self/cwd/.env; cat .environment; ls d >/dev/null && echo listed`
	for user, uid := range users(t) {
		t.Run("hidden names are not read "+user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			script(t, dir, uid, prepare)
			j := job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", try}}
			if out, _ := run(t, j); !strings.Contains(out, "secret") {
				t.Errorf("not hidden, and yet not read:\n%s", out)
			}
			dir, rules = workspace(t, uid)
			script(t, dir, uid, prepare)
			rules.Hidden = hiddenNames
			j.Dir, j.Rules = dir, rules
			if out, _ := run(t, j); strings.Contains(out, "secret") || !strings.Contains(out, "plain") || !strings.Contains(out, "listed") {
				t.Errorf("hidden:\n%s", out)
			}
		})
		t.Run("a descriptor becomes a hidden file while /dev/tty is opened "+user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			script(t, dir, uid, prepare)
			rules.Hidden = hiddenNames
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `"$SELF" swapterminalread .env`}, Env: []string{roleEnv + "=act"}})
			if code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
		t.Run("a repository and a FIFO work while names are hidden "+user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			rules.Hidden = hiddenNames
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", `git init -q; echo a >a; git add a; git commit -qm m; git log --oneline
				mkfifo p; (cat p >o &); echo one >p; while ! grep -q one o; do :; done; echo two >p & cat p | grep two`}})
			if code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}

// TestKernelNamesThatAreGone: a descriptor of O_PATH, which is no open, leads to a file when the name that it was opened by is gone. The file may have
// another name by then, or be a hidden one.
func TestKernelNamesThatAreGone(t *testing.T) {
	const open = `import os
def path(fd): return "/proc/self/fd/%d" % fd
def link(fd, name): os.link(path(fd), name, src_dir_fd=os.open(".", os.O_PATH)) # with AT_SYMLINK_FOLLOW
def attempt(what, act):
    try: act(); print("UNEXPECTED:", what)
    except PermissionError: print("refused:", what)
def tmpfile():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, b); p = os.open(path(fd), os.O_PATH); link(fd, "y"); os.close(fd)
    return p
def second():
    open("x", "wb").write(b); os.link("x", "y"); fd = os.open("x", os.O_PATH); os.remove("x")
    return fd
`
	cases := []struct{ name, prepare, script, want string }{
		{"a hidden file that is removed", `echo secret >.env`, `fd = os.open(".env", os.O_PATH); os.remove(".env"); attempt("read", lambda: print(open(path(fd)).read()))`, "refused: read\n"},
		{"an index", `git init -q; echo a >a; git add a`, `b = open(".git/index", "rb").read()
for fd in second, tmpfile:
    fd = fd(); os.rename("y", ".git/index")
    attempt("write", lambda: open(path(fd), "r+b").write(b"evil"))
    attempt("cut", lambda: os.truncate(path(fd), 0))
    attempt("change its mode", lambda: os.chmod(path(fd), 0o666))
    attempt("link", lambda: link(fd, "z"))
    print(open(".git/index", "rb").read() == b)`, strings.Repeat("refused: write\nrefused: cut\nrefused: change its mode\nrefused: link\nTrue\n", 2)},
		{"what has no name any more", `echo plain >plain`, `fd = os.open("plain", os.O_RDONLY); os.remove("plain"); print(open(path(fd), "r+").read(), end=""); os.fchmod(fd, 0o600)
p = os.open(".", os.O_TMPFILE | os.O_RDWR); open(path(p), "w").write("new"); link(p, "named"); print(open("named").read())
open("x (deleted)", "w").write("x"); fd = os.open("x (deleted)", os.O_PATH); open(path(fd), "w").write("y"); print(open("x (deleted)").read())`, "plain\nnew\ny\n"},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				dir, rules := workspace(t, uid)
				rules.Hidden = hiddenNames
				script(t, dir, uid, c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"python3", "-c", open + c.script}})
				if out != c.want {
					t.Errorf("%s", out)
				}
			})
		}
	}
}

// TestKernelADirectoryAroundAHiddenName is not renamed: what lies in it would be hidden no more.
func TestKernelADirectoryAroundAHiddenName(t *testing.T) {
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			rules.Hidden = []string{"config/master.key", "a/*/x.pem"}
			script(t, dir, uid, `mkdir -p config a/keys; echo secret >config/master.key; chmod 600 config/master.key; echo secret >a/keys/x.pem; echo plain >config/routes`)
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `mkdir e; "$SELF" exchange e config; mv config c; mv a/keys k; mv a b; cat */*.key config/master.key */*.pem */*/*.pem; ln -s config l; cat l/routes; chmod 666 config/master.key 2>/dev/null; stat -c %a config/master.key; rm -r config && echo removed`}, Env: []string{roleEnv + "=act"}})
			if strings.Contains(out, "secret") || !strings.HasSuffix(out, "plain\n600\nremoved\n") {
				t.Errorf("%s", out)
			}
		})
	}
}

// TestKernelARootThatIsNotThereStartsNothing where Landlock alone holds the files: what is hidden in it would not be known by another path.
func TestKernelARootThatIsNotThereStartsNothing(t *testing.T) {
	dir, rules := workspace(t, self)
	rules.Roots, rules.Hidden = append(rules.Roots, Root{Path: dir + "/absent", Fold: true}), hiddenNames
	for _, fence := range []bool{false, true} {
		rules.Fence = fence
		if out, code := run(t, job{Rules: rules, Dir: dir, UID: self, Argv: []string{"mkdir", map[bool]string{false: "with", true: "without"}[fence]}}); (code != 0) != fence {
			t.Errorf("with Fence %v: exit %d\n%s", fence, code, out)
		}
	}
}

// TestKernelFolded stands on any file system: the rules fold whatever the directory does.
func TestKernelFolded(t *testing.T) {
	dir, rules := workspace(t, self)
	rules.Roots[0].Fold = true
	out, _ := run(t, job{Rules: rules, Dir: dir, UID: self, Argv: []string{"bash", "-c", "mkdir .GIT; mkdir .Git/Hooks .GIT/HOOKS; echo evil >.BashRC; echo evil >.ba\u017fhrc; echo ok >BASHRC"}})
	for _, p := range []string{".GIT/HOOKS", ".Git/Hooks", ".BashRC", ".ba\u017fhrc"} {
		if _, err := os.Lstat(filepath.Join(dir, p)); err == nil {
			t.Errorf("%s was made\n%s", p, out)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "BASHRC")); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestKernelUntouched holds that nothing is left when the tool and the supervisor are killed.
func TestKernelUntouched(t *testing.T) {
	dir, rules := workspace(t, self)
	before := protectedFiles(t, dir)
	run(t, job{Rules: rules, Dir: dir, UID: self, Argv: []string{"bash", "-c", `echo >.bashrc; mkdir .vscode; kill -9 $PPID $$`}})
	if after := protectedFiles(t, dir); after != before {
		t.Errorf("left behind: %s", after)
	}
}
