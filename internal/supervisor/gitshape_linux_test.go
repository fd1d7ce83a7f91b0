package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelShapesInGitDirectories has a tool give the shape of a git directory to what is none, so that what lies in it is judged as that
// one's and not as the repository's.
func TestKernelShapesInGitDirectories(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; `
	const evil = `'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch '$PWD'/PWNED; false"\n'`
	const hook = `'#!/bin/sh\ntouch PWNED ../PWNED\n'`
	cases := []struct{ name, prepare, attack, outside string }{
		{"worktrees", repo + `mkdir -p ../out/victim`, `W=.git/worktrees; mkdir -p $W/logs; mkdir $W/HEAD $W/objects $W/refs; "$SELF" mknod $W/HEAD; for d in logs refs/x; do mkdir -p $W/$d; echo "$(cd ../out; pwd)/victim/.git" >$W/$d/gitdir; : >x; cp $W/$d/gitdir y; echo "$(cd ../out; pwd)/victim/.git" >t; mv t $W/$d/gitdir; done
			mkdir -p w; printf 'gitdir: ../.git/worktrees\n' >w/.git; : >x`, `for d in logs refs/x; do ! grep -q victim .git/worktrees/$d/gitdir || exit 1; done; git worktree list; git worktree repair; git worktree prune; [ ! -e ../out/victim/.git ]`},
		{"a linked worktree's name for one", repo + `git worktree add -q refs; git worktree add -q objects; git worktree add -q logs; mkdir -p ../out/victim`, `mkdir .git/worktrees/HEAD; echo "$(cd ../out; pwd)/victim/.git" >t; cp t .git/worktrees/logs/gitdir; mv t .git/worktrees/logs/gitdir; : >x`, `! grep -q victim .git/worktrees/logs/gitdir`},
		{"modules", repo, `M=.git/modules; mkdir -p $M/logs/hooks $M/logs/m/hooks $M/HEAD $M/objects $M/refs; for d in logs logs/m; do printf ` + hook + ` >$M/$d/hooks/post-checkout; printf ` + evil + ` >$M/$d/config; done
			rmdir $M/HEAD; printf ` + evil + ` >$M/config; echo ref: refs/heads/m >$M/HEAD; rm -f $M/config; echo ref: refs/heads/m >$M/HEAD; echo ref: refs/heads/m >h; mv h $M/HEAD; for d in logs logs/m; do printf ` + hook + ` >$M/$d/hooks/post-checkout; printf ` + evil + ` >$M/$d/config; done
			mkdir w; printf 'gitdir: ../.git/modules\n' >w/.git; : >x`,
			`git -C w status; git status; [ ! -s .git/modules/logs/hooks/post-checkout ] && [ ! -s .git/modules/logs/m/config ] && [ ! -s .git/modules/logs/m/hooks/post-checkout ] && [ ! -f .git/modules/HEAD ]`},
		{"modules of a worktree", repo + `git worktree add -q wt`, `M=.git/worktrees/wt/modules; mkdir -p $M/logs $M/objects $M/refs; echo ref: refs/heads/m >$M/HEAD; mkdir -p $M/logs/m/hooks; printf ` + hook + ` >$M/logs/m/hooks/post-checkout`, `[ ! -s .git/worktrees/wt/modules/logs/m/hooks/post-checkout ]`},
		{"what is no HEAD becomes one", ``, `mkdir -p d/objects d/refs d/HEAD e/objects e/refs; "$SELF" bind e/HEAD; for d in d e; do printf ` + evil + ` >$d/config; rm -r $d/HEAD; echo ref: refs/heads/m >$d/HEAD; echo ref: refs/heads/m >$d/h; mv $d/h $d/HEAD; ln $d/h $d/HEAD; done
			mkdir -p f/objects f/refs f/HEAD; printf ` + evil + ` >f/config; echo ref: refs/heads/m >h; "$SELF" exchange h f/HEAD; "$SELF" exchange f/HEAD h; mkfifo f/h; "$SELF" exchange f/h f/HEAD`,
			`for d in d e f; do (cd $d; git status; git log); [ ! -f $d/HEAD ] && [ ! -p $d/HEAD ] || exit 1; done`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.attack}, Env: []string{roleEnv + "=act"}})
				end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.outside}})
				if _, err := os.Lstat(filepath.Join(dir, "PWNED")); code != 0 || err == nil || strings.Contains(out, "supervisor test:") {
					t.Errorf("outside: exit %d, %v\n%s\ninside:\n%s", code, err, end, out)
				}
			})
		}
		for name, text := range map[string]string{
			"worktrees named as what is closed": repo + `for w in refs objects logs worktrees modules; do git worktree add -q $w; (cd $w; echo b >b; git add b; git commit -qm b; git status >/dev/null); done; git worktree list | wc -l | grep -qx 6; for w in refs objects logs worktrees modules; do git worktree remove $w; done; git fsck`,
			"a bisect in a worktree":            repo + `for i in 1 2 3; do git commit -qm $i --allow-empty; done; git worktree add -q wt; cd wt; git bisect start HEAD HEAD~3 >/dev/null; git bisect good >/dev/null; git bisect reset 2>/dev/null; mkdir -p ../.git/worktrees/wt/refs/bisect`,
			"a submodule named as one":          repo + `for m in refs logs HEAD a/modules; do git init -q lib; git -C lib commit -qm l --allow-empty; mkdir -p .git/modules/$(dirname $m); git clone -q --separate-git-dir=.git/modules/$m lib $(basename $m) 2>&1; git -C $(basename $m) log --oneline | grep -q l; rm -r lib; done`,
		} {
			t.Run(name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", text}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
