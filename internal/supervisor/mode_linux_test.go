package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelOtherUsersWriteNoGitDirectory: a tool does not open to other users of the machine what git obeys. What a group shares stays shared.
func TestKernelOtherUsersWriteNoGitDirectory(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; mkdir -p .git/hooks; git init -q --bare b.git; printf '[submodule "x"]\n\tpath = x\n' >.gitmodules; `
	const wide = `find .git b.git .gitmodules -perm /o+w ! -type l; find .git .git/hooks .git/refs .git/config .git/index .gitmodules b.git b.git/config -maxdepth 0 -perm /g+w`
	cases := []struct{ name, prepare, script string }{
		{"chmod", repo, `chmod 775 .; chmod 666 .git/config b.git/config .gitmodules .git/index; chmod 777 .git b.git .git/hooks .git/info .git/refs; chmod -R a+w .git b.git; "$SELF" fchmod .git; (cd .git; chmod 777 .); chmod g+w .git/config; ` + wide},
		{"a lock's mode", repo, `umask 0; git config user.name x; git config -f .gitmodules submodule.y.path y; cp .git/index i; chmod 666 i; mv i .git/index; git add -N a; cp .git/config c; chmod 777 c; mv c .git/config; ` + wide},
		{"a umask", ``, `umask 0; mkdir d; cd d; mkdir .git b.git; cd ..; git init -q d; git init -q --bare d/b.git; git -C d commit -qm x --allow-empty; find d -path '*git*' -perm /o+w ! -type l`},
		{"a file that is new", repo, `umask 0; cd .git; : >FETCH_HEAD; mkdir -p rebase-merge/x; "$SELF" mknod rebase-merge/y; find . -perm /o+w ! -type l`},
	}
	works := map[string]string{
		"a group's repository":    `mkdir ../ws/s.git; chmod g+ws s.git; |umask 022; git init -q --bare --shared=group s.git; git clone -q s.git c 2>/dev/null; cd c; git commit -qm x --allow-empty; git push -q origin HEAD; cd ..; [ -z "$(find s.git -type d ! -perm -g+w)" ]; git -C s.git config receive.denyNonFastforwards true; find s.git/config -perm -g+w | grep -q .`,
		"a group's, from outside": `git init -q --shared=group .; |umask 022; git config user.name y; echo a >a; git add a; git commit -qm one; find .git/config -perm -g+w | grep -q .; [ -z "$(find .git/objects .git/refs .git/logs -type d ! -perm -g+w)" ]; find .git/index -perm -g+w | grep -q .`,
		"git init":                `true|git init -q .; git config user.name x; [ "$(stat -c %a .git/config)" = 644 ]; chmod 600 .git/config; chmod 755 .git; git config user.email y; [ "$(stat -c %a .git/config)" = 600 ] || [ "$(stat -c %a .git/config)" = 644 ]; umask 077; git init -q p; [ "$(stat -c %a p/.git)" = 700 ]; mkdir q; chmod 777 q; [ "$(stat -c %a q)" = 775 ]; chmod 700 q; chmod 755 q; [ "$(stat -c %a q)" = 755 ]`,
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, "umask 022; "+c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", "{ " + c.script[:strings.Index(c.script, "; find")] + "; } >log 2>&1"}, Env: []string{roleEnv + "=act"}})
				found, _ := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", "{" + c.script[strings.Index(c.script, "; find")+1:] + "; } >found"}})
				text, err := os.ReadFile(filepath.Join(dir, "found"))
				if err != nil {
					t.Fatal(err, found)
				}
				if found = strings.TrimSpace(string(text)); found != "" {
					t.Errorf("others can write:\n%s\n%s", found, out)
				}
			})
		}
		for name, text := range works {
			t.Run(name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				before, inside, _ := strings.Cut(text, "|")
				script(t, dir, uid, before)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-exc", inside}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}

// TestKernelAnotherGroupGetsNoGitDirectory where there are no mounts, and so no user namespace: what the user's group can write stays that group's.
func TestKernelAnotherGroupGetsNoGitDirectory(t *testing.T) {
	kerneltest.Need(t, kerneltest.IsRoot) // who is in several groups
	dir, rules := workspace(t, 65534)
	rules.Fence, rules.Hidden = true, hiddenNames
	script(t, dir, 65534, `umask 002; git init -q .; git init -q --bare b.git; mkdir -p .git/hooks .vscode d; echo x >.vscode/x; echo x >.env; echo x >plain`)
	out, _ := run(t, job{Rules: rules, Dir: dir, UID: 65534, Groups: []uint32{4242}, Env: []string{"LC_ALL=C"}, Argv: []string{"bash", "-c",
		`id -G; chgrp 4242 plain d && echo works; for f in b.git .git .git/hooks .git/config .git/refs .vscode .vscode/x .env; do chgrp -h 4242 $f 2>/dev/null && echo UNEXPECTED: $f; chgrp $(id -g) $f || echo UNEXPECTED: the same for $f; done`}})
	if want := fmt.Sprintf("%d 4242\nworks\n", 65534); out != want {
		t.Errorf("%s", out)
	}
}

// TestKernelOtherUsersMakeNoProtectedNames: a tool opens none of the user's directories to other users, who would plant names in it or read
// what is hidden there.
func TestKernelOtherUsersMakeNoProtectedNames(t *testing.T) {
	const wide = `find . -type d -perm /o+w`
	cases := []struct{ name, prepare, script, want string }{
		{"chmod", `chmod 755 .; mkdir -p a/b`, `chmod 777 . a; chmod 1777 a/b; chmod o+w .; (cd a; chmod 2777 .); "$SELF" fchmod a`, ""},
		{"chmod by way of the sticky bit", `chmod 1777 .`, `chmod 777 .`, ""},
		{"mkdir and umask", ``, `umask 0; mkdir a; mkdir -m 777 b; mkdir -p c/d; "$SELF" nothing`, ""},
		{"what is so already", `mkdir a; chmod 777 a`, `chmod 757 a; chmod 777 a`, "./a\n"},
		{"modes of the tool's choice beside it", `chmod 755 .`, `umask 0; mkdir a; : >f; [ "$(stat -c %a a)" = 775 ]; [ "$(stat -c %a f)" = 666 ]; chmod 770 a; [ "$(stat -c %a a)" = 770 ]; chmod 2755 a; [ "$(stat -c %a a)" = 2755 ]; chmod g-s a; chmod 700 a; chmod 755 a; [ "$(stat -c %a a)" = 755 ]`, ""},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, "umask 022; "+c.prepare)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", "set -e; case $0 in modes*) ;; *) set +e;; esac; " + c.script, c.name}, Env: []string{roleEnv + "=act"}})
				found, _ := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", wide}})
				if found != c.want || code != 0 && strings.HasPrefix(c.name, "modes") {
					t.Errorf("exit %d; others can write %q\n%s", code, found, out)
				}
			})
		}
		t.Run("hidden names "+user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			rules.Hidden = hiddenNames
			script(t, dir, uid, "umask 022; mkdir d e; echo x >.env; chmod 700 . d; chmod 711 e")
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c",
				`chmod 755 . d; chmod 711 .; chmod g+x .; chmod 755 e; chmod 700 d; stat -c %a . d e; chmod 500 d; chmod 755 e; chmod 500 e; stat -c %a d e; : >f; chmod 644 f; stat -c %a f`}})
			if out != "700\n700\n711\n500\n500\n644\n" {
				t.Errorf("modes:\n%s", out)
			}
		})
	}
}
