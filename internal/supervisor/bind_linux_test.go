package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// binders are the ways in which the supervisor binds a socket for the tool.
var binders = map[string]func(r *Rules){
	"the tool's":       func(*Rules) {},
	"the supervisor's": func(r *Rules) { r.Connects = []Endpoint{} },
}

// TestKernelSocketCompletesNoGitDirectory: git takes a socket for a repository's refs or objects, since it asks for the right to execute
// alone. So a socket makes no directory a git directory, nor one that was a git directory one again.
func TestKernelSocketCompletesNoGitDirectory(t *testing.T) {
	const evil = `'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch '$PWD'/PWNED; false"\n'`
	cases := []struct{ name, prepare, attack, outside string }{
		{"a new one", ``, `mkdir -p d/objects e/refs f/objects; for at in d/refs e/objects; do d=${at%/*}; echo ref: refs/heads/m >$d/HEAD; printf ` + evil + ` >$d/config
			"$SELF" bind $at; "$SELF" bind "$PWD/$at"; "$SELF" bind $d/../$at; (cd $d; "$SELF" bind ${at#*/}); done
			echo ref: refs/heads/m >f/HEAD; "$SELF" bind f/commondir; echo 'gitdir: d' >.git; : >x; [ -e .git ] || { echo 'gitdir: e' >.git; : >x2; }`,
			`git status; (cd d; git status); (cd e; git status); [ ! -S d/refs ] && [ ! -S e/objects ] && [ ! -S f/commondir ]`},
		{"in another order", ``, `mkdir -p d; cd d; "$SELF" bind refs; "$SELF" bind objects; printf ` + evil + ` >config; echo ref: refs/heads/m >HEAD; echo ref: refs/heads/m >h; mv h HEAD; ln h HEAD`, `cd d; git status; [ ! -e HEAD ]`},
		{"a bare repository again", `git init -q --bare b.git`, `rm -r b.git/refs; mkdir -p b.git/hooks wt; printf ` + evil + ` >b.git/config; "$SELF" bind b.git/refs; cd b.git; "$SELF" bind refs`, `git -C b.git status; [ ! -S b.git/refs ]`},
		{"nor is one held up", ``, `mkdir -p s t; "$SELF" bind s/refs; "$SELF" bind t/plain; cd s; "$SELF" bind HEAD; "$SELF" bind plain; cd ../t; git init -q .`, `[ -S s/refs ] && [ -S s/HEAD ] && [ -S s/plain ] && [ -S t/plain ] && [ -d t/.git ]`},
	}
	for user, uid := range users(t) {
		for binder, change := range binders {
			if binder == "the tool's" && os.Getenv("SUPERVISOR_WITHOUT_CALLS") != "" {
				continue // it needs pidfd_getfd(2)
			}
			for _, c := range cases {
				t.Run(c.name+", by "+binder+" "+user, func(t *testing.T) {
					t.Parallel()
					dir, rules := workspace(t, uid)
					change(&rules)
					script(t, dir, uid, c.prepare)
					out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.attack}, Env: []string{roleEnv + "=act"}})
					end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.outside}})
					if _, err := os.Lstat(filepath.Join(dir, "PWNED")); code != 0 || err == nil || strings.Contains(out, "supervisor test:") {
						t.Errorf("outside: exit %d, %v\n%s\ninside:\n%s", code, err, end, out)
					}
				})
			}
		}
	}
}
