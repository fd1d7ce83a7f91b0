package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

const withLib = `git init -q ../out/lib; (cd ../out/lib; echo a >a; git add a; git commit -qm one); git init -q .; echo a >a; git add a; git commit -qm one; `

// TestKernelGitmodulesAttacks has a tool write what the user's git would obey in .gitmodules. Each text is tried by each call.
func TestKernelGitmodulesAttacks(t *testing.T) {
	kerneltest.Long(t)
	texts := map[string]string{
		"a command":                   `[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n\tupdate = !touch PWNED\n`,
		"a remote helper":             `[submodule "lib"]\n\tpath = lib\n\turl = ext::sh -c touch% PWNED\n`,
		"an option for a URL":         `[submodule "lib"]\n\tpath = lib\n\turl = -u./evil\n`,
		"an option for a host":        `[submodule "lib"]\n\tpath = lib\n\turl = ssh://-oProxyCommand=evil/x\n`,
		"an option for a path":        `[submodule "lib"]\n\tpath = -u./evil\n\turl = ../lib\n`,
		"an option for a branch":      `[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n\tbranch = --upload-pack=evil\n`,
		"a path among hooks":          `[submodule "lib"]\n\tpath = .git/hooks\n\turl = ../lib\n`,
		"a path among hooks, NTFS":    `[submodule "lib"]\n\tpath = GIT~1/hooks\n\turl = ../lib\n`,
		"a path outside":              `[submodule "lib"]\n\tpath = ../x\n\turl = ../lib\n`,
		"an absolute path":            `[submodule "lib"]\n\tpath = /x\n\turl = ../lib\n`,
		"a name that leads elsewhere": `[submodule "../../x"]\n\tpath = lib\n\turl = ../lib\n`,
		"another section":             `[core]\n\tfsmonitor = evil\n`,
		"an include":                  `[include]\n\tpath = evil\n`,
		"a line that goes on":         `[submodule "lib"]\n\tbranch = x\\\n\tupdate = !touch PWNED\n`,
		"a local URL through a link":  `[submodule "lib"]\n\tpath = lib\n\turl = /proc/self/cwd/evil\n`,
	}
	const attack = `printf %b "$TEXT" >t; cp t .gitmodules; : >x; cat t >>.gitmodules; cp t u; mv u .gitmodules; : >x; ln t .gitmodules; ln -s t .gitmodules; set -C; cat t >.gitmodules.lock; mv .gitmodules.lock .gitmodules || rm .gitmodules.lock; cat t >.gitmodules; : >x2
		cp t g; "$SELF" exchange g .gitmodules; rm -f .gitmodules; cat t >.gitmodules; cp t .gitmodules; : >x3; cat t 1<>.gitmodules; : >x4`
	for user, uid := range users(t) {
		for name, text := range texts {
			for there, prepare := range map[string]string{"": "", ", in place of one": `printf '[submodule "old"]\n\tpath = old\n\turl = ../old\n' >.gitmodules; git add .gitmodules; git commit -qm g`} {
				t.Run(name+there+" "+user, func(t *testing.T) {
					t.Parallel()
					dir, rules := workspace(t, uid)
					script(t, dir, uid, withLib+prepare)
					out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{roleEnv + "=act", "TEXT=" + text}})
					b, err := os.ReadFile(filepath.Join(dir, ".gitmodules"))
					if got := string(b); err == nil && got != "" && got != "[submodule \"old\"]\n\tpath = old\n\turl = ../old\n" {
						t.Errorf("it says %q\n%s", got, out)
					}
				})
			}
		}
	}
}

// TestKernelGitmodulesOfTheUser: what the user has written stays, and so does the lock of the user's git.
func TestKernelGitmodulesOfTheUser(t *testing.T) {
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, withLib+`printf '[submodule "m"]\n\tpath = m\n\turl = ../m\n\tupdate = !mine\n' >.gitmodules; mkdir locked; cd locked; git init -q .; printf '[submodule "m"]\n\tpath = m\n\turl = ../m\n' >.gitmodules; echo mine >.gitmodules.lock`)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `sed -i s/mine/evil/ .gitmodules; rm -f .gitmodules; mv .gitmodules x; echo >.gitmodules; : >x
				cd locked; echo evil >>.gitmodules.lock; echo evil >.gitmodules.lock; cp ../a e; mv e .gitmodules.lock; rm -f .gitmodules.lock; ln .gitmodules.lock k && echo evil >>k; mv .gitmodules.lock .gitmodules; sed -i s/m/n/ .gitmodules; printf '[submodule "n"]\n\tpath = n\n\turl = ../n\n' >.gitmodules; : >x; true`}})
			if code != 0 {
				t.Error(out)
			}
			script(t, dir, uid, `grep -qx '	update = !mine' .gitmodules; cd locked; [ "$(cat .gitmodules.lock)" = mine ]; grep -qx '	path = m' .gitmodules; [ ! -L .gitmodules ]`)
		})
	}
}

// TestKernelNoPartOfAGitmodules: where the supervisor can write only the first part of what a tool has written, nothing stays.
func TestKernelNoPartOfAGitmodules(t *testing.T) {
	const many = `for i in $(seq 300); do printf '[submodule "lib%d"]\n\tpath = lib%d\n\turl = https://example.com/%d.git\n' $i $i $i; done >.gitmodules; : >x; wc -c <.gitmodules`
	for user, uid := range users(t) {
		for limit, want := range map[uint64]string{0: "20976\n", 4096: ""} {
			t.Run(fmt.Sprintf("%s, %d bytes", user, limit), func(t *testing.T) {
				dir, rules := workspace(t, uid)
				script(t, dir, uid, withLib)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, FileSize: limit, Argv: []string{"bash", "-c", many}})
				_, err := os.Lstat(filepath.Join(dir, ".gitmodules"))
				if limit == 0 && (out != want || err != nil) || limit > 0 && !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the tool said %q, want %q; .gitmodules: %v", out, want, err)
				}
			})
		}
	}
}

// TestKernelSubmodulesWork is the honest side: submodules are added, moved, checked out with their branch, cloned and removed inside.
func TestKernelSubmodulesWork(t *testing.T) {
	kerneltest.Long(t)
	const allow = `git config -f ../out/gc protocol.file.allow always; export GIT_CONFIG_GLOBAL=$PWD/../out/gc; `
	cases := []struct{ name, script string }{
		{"added by a path", allow + `git submodule --quiet add "$(cd ../out/lib; pwd)" lib; git commit -qm sub; [ -e lib/a ]; git -C lib log --oneline | grep -q one; git submodule status | grep -q lib; [ "$(git config -f .gitmodules submodule.lib.path)" = lib ]; [ -z "$(git status --porcelain)" ]; git fsck`},
		{"added by a relative path, with a branch", allow + `git submodule --quiet add -b master ../out/lib x/lib; git commit -qm sub; grep -qx '	url = ../out/lib' .gitmodules; git submodule set-branch -b other x/lib; grep -q other .gitmodules; git submodule set-url x/lib "$(cd ../out/lib; pwd)"; git submodule --quiet sync; git submodule --quiet update`},
		{"added by a URL", `git submodule add https://127.0.0.1:1/x.git lib 2>&1 | grep -q 'onnect\|refused\|unable'; git config -f .gitmodules submodule.l.path l; git config -f .gitmodules submodule.l.url https://example.com/l.git; git config -f .gitmodules submodule.l.shallow true; git add .gitmodules; git commit -qm m; git submodule init 2>/dev/null || true`},
		{"branches with and without it", allow + `git checkout -q -b with; git submodule --quiet add ../out/lib lib; git commit -qm sub; git checkout -q master 2>/dev/null; [ ! -e .gitmodules ]; git checkout -q with; [ -e .gitmodules ]; git submodule --quiet update; [ -e lib/a ]; [ -z "$(git status --porcelain)" ]; git checkout -q master 2>/dev/null; git merge -q with; [ -e .gitmodules ]; git fsck`},
		{"moved, emptied and removed", allow + `git submodule --quiet add ../out/lib lib; git commit -qm sub; git mv lib lib2; grep -qx '	path = lib2' .gitmodules; git commit -qm mv; git submodule --quiet deinit -f lib2; git submodule --quiet update --init; [ -e lib2/a ]; git rm -qf lib2; git commit -qm rm; [ ! -s .gitmodules ]; git stash list`},
		{"cloned with them", allow + `git submodule --quiet add "$(cd ../out/lib; pwd)" lib; git commit -qm sub; git clone -q --recurse-submodules . c; [ -e c/lib/a ]; [ -e c/.gitmodules ]; [ -z "$(git -C c status --porcelain)" ]; rm -rf c; [ ! -e c ]`},
		{"written by other tools", `printf '[submodule "a"]\n\tpath = a\n\turl = ../a\n' >.gitmodules; : >x; grep -q path .gitmodules; sed -i 's/= a/= b/' .gitmodules; cp .gitmodules y; rm .gitmodules; tar cf t y; mv y .gitmodules; chmod 600 .gitmodules; rm .gitmodules; for i in $(seq 300); do printf '[submodule "lib%d"]\n\tpath = lib%d\n\turl = https://example.com/%d.git\n' $i $i $i; done >.gitmodules; : >x; [ "$(grep -c path .gitmodules)" = 300 ]`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, withLib)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
