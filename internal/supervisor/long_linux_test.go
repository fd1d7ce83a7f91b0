package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// down makes and enters 60 directories of long names, three times PATH_MAX in all; again enters them.
const (
	down  = `n=$(printf 'x%.0s' $(seq 200)); top=$PWD; down() { for i in $(seq 60); do mkdir $n 2>/dev/null; cd $n; done; }; `
	again = `again() { cd "$top/$1"; for i in $(seq 60); do cd $n || exit 1; done; }; `
)

// TestKernelTreesDeeperThanAPath: below a directory whose path no system call tells, names are made, changed and removed as elsewhere,
// and what is protected elsewhere is protected.
func TestKernelTreesDeeperThanAPath(t *testing.T) {
	kerneltest.Long(t)
	for _, c := range []struct{ name, prepare, script, want, outside string }{
		{"ordinary work", ``, `down; echo one >f; cat f; mv f g; ln g h; rm h; chmod 600 g; truncate -s 3 g; ln -s g l; mkfifo p; cat l; echo; mkdir d; mv d e; rmdir e; "$SELF" fchmod g && echo mode; "$SELF" bind s && echo bound
			touch .gitignore; cd "$top"; rm -r x*; ls`, "one\none\nmode\nbound\n", `! ls x* 2>/dev/null`},
		{"a repository", ``, `down; git init -q . && git config user.name n && git config user.email e@f; git config alias.x '!evil' 2>/dev/null || echo refused; cd "$top"; rm -r x*; ls`, "refused\n", ``},
		{"protected names", ``, `down; echo evil >.envrc; mkdir .vscode; mkdir d; mv d .idea; echo evil >f; mv f .bashrc; ln f .zshrc; ln -s f .profile; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; ls -A`, ".git\nd\nf\n", ``},
		{"protected names that are there", `down; mkdir .vscode; echo mine >.vscode/x; echo mine >.envrc`, `down; echo evil >.envrc; echo evil >>.vscode/x; echo evil >.vscode/y; ln .envrc z; mv .envrc y; mv .vscode v; rm -f .envrc; "$SELF" fchmod .envrc >g; "$SELF" truncate .envrc >g; cat .envrc .vscode/x; ls -A .vscode`,
			"mine\nmine\nx\n", ``},
		{"a tree in a protected directory", again + `mkdir .vscode; cd .vscode; down`, again + `n=$(printf 'x%.0s' $(seq 200)); again .vscode; echo evil >f; mkdir d; ls`, "", ``},
		{"an embedded repository", ``, `down; mkdir objects refs hooks; echo evil >config; echo evil >hooks/pre-commit; echo ref: refs/heads/m >HEAD; [ -e HEAD ] || echo refused`, "refused\n", ``},
		{"a name that the kernel spells otherwise", `down; mkdir 'a\012b' $'a\nb'`, `down; (cd 'a\012b'; echo evil >f; ls); (cd $'a\nb'; echo evil >f; ls)`, "", ``},
	} {
		for user, uid := range users(t) {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				if os.Getenv("SUPERVISOR_WITHOUT_CALLS") != "" && strings.Contains(c.script, `"$SELF" bind`) {
					t.Skip("needs pidfd_getfd(2): the policy has no sockets that the supervisor makes")
				}
				dir, rules := workspace(t, uid)
				script(t, dir, uid, down+c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", "exec 2>/dev/null; " + down + c.script}, Env: []string{roleEnv + "=act"}})
				if out != c.want {
					t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(out, "xxxx", ""), c.want)
				}
				script(t, dir, uid, down+c.outside)
				script(t, dir, uid, "rm -rf x* .vscode") // os.RemoveAll goes by paths
			})
		}
	}
}
