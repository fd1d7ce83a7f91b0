package supervisor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelGitFilesLeadNowhereElse has a tool bend a .git file to a repository outside of the root, in one run or in two. Afterwards
// git, outside, finds in each directory with a .git file a repository in the root, or none.
func TestKernelGitFilesLeadNowhereElse(t *testing.T) {
	kerneltest.Long(t)
	// The user's repositories: what a link to ../out leads to, and what lies above the root.
	const theirs = `for r in ../out/o ../out/.git/x/o ../o ../out/store; do git init -q $r; done; git init -q ..; git init -q --bare ../out/bare; mkdir -p ../out/worktrees; cp -r ../out/o/.git ../out/worktrees/w; cp -r ../out/o/.git ../out/w; cp -r ../out/o/.git ../.git/modules; cp -r ../out/o/.git ../.git/w; `
	const one = `git commit -qm one --allow-empty`
	cases := []struct{ name, prepare, first, second string }{
		{"a directory on the way", ``, `mkdir t; git init -q t/o; echo 'gitdir: t/o/.git' >.git; : >x`, `mv t .t2; ln -s ../out t`},
		{"the same by an absolute path", ``, `mkdir t; git init -q t/o; echo "gitdir: $PWD/t/o/.git" >.git; : >x`, `rm -rf t; ln -s ../out t`},
		{"a repository itself", ``, `git init -q t; echo 'gitdir: t/.git' >.git; : >x`, `mv t t2; ln -s ../out/o t; ln -s ../out/o l; mv l t; ln l t; mkdir e; "$SELF" exchange l t; mv -T e t; "$SELF" exchange l t`},
		{"a repository beside it", ``, `mkdir w; git init -q t; echo "gitdir: $PWD/t/.git" >w/.git; : >x`, `mv t t2; ln -s ../out/o t; mkdir e; cd e; ln -s ../../out/o t; mv t ..`},
		{"what is not there yet", ``, `mkdir w; echo "gitdir: ../t" >w/.git; : >x`, `ln -s ../out/bare t; rm t; ln -s "$(cd ../out; pwd)/bare" t`},
		{"what is not there yet, deeper", ``, `mkdir w t; echo "gitdir: ../t/o" >w/.git; : >x`, `rmdir t; ln -s ../out t`},
		{"a bare repository beside it", ``, `git init -q --bare store; mkdir w; echo "gitdir: ../store/worktrees/w" >w/.git; : >x`, `mkdir -p store/worktrees; rm -rf store/*; mkdir store; ln -s ../../out/worktrees store/worktrees; rmdir store; mkdir z; ln -s ../../out/worktrees z/worktrees; mv z store; "$SELF" exchange z store`},
		{"the directory of a worktree in it", ``, `git init -q --bare store; mkdir w; mkdir store/worktrees; echo "gitdir: ../store/worktrees/w" >w/.git; : >x`, `rm -rf store; mkdir -p store/worktrees; ln -s ../../../out/w store/worktrees/w; rmdir store/worktrees; mkdir z; ln -s ../../../out/w z/w; mv z store/worktrees`},
		{"it moves up", ``, `mkdir -p q/1/x; git init -q q/o; echo 'gitdir: ../../o/.git' >q/1/x/.git; : >x`, `mv q/1/x y; mv q/1 z`},
		{"it moves elsewhere", ``, `mkdir -p q/x; git init -q q/o; echo 'gitdir: ../o/.git' >q/x/.git; : >x`, `mv q/x y; ln -s ../out/o o; mkdir -p d; ln -s ../../out/o d/o; mv q/x d; "$SELF" exchange q/x d`},
		{"a submodule moves up", ``, `mkdir -p q/1/x; git init -q q; echo 'gitdir: ../../.git' >q/1/x/.git; : >x`, `mv q/1/x y`},
		{"a submodule's directory moves up", ``, `mkdir -p q/1/2/x; git init -q q; echo 'gitdir: ../../../.git/modules' >q/1/2/x/.git; : >x`, `mv q/1/2 y; mkdir e; "$SELF" exchange q/1/2 e; mv q/1/2/x z`},
		{"a worktree moves up", `git init -q q; cd q; ` + one, `cd q; git worktree add -q 1/w; cd ..`, `mv q/1/w w`},
		{"a worktree's repository", `git init -q q; cd q; ` + one, `cd q; git worktree add -q ../w; cd ..`, `mv q p; mkdir -p ../out/o/.git/worktrees; ln -s ../out/o q`},
		{"a file that cannot be read for a while", ``, `mkdir w; git init -q t; echo "gitdir: $PWD/t/.git" >w/.git; : >x`, `chmod 0 w/.git; mv t t2; ln -s ../out/o t; chmod 644 w/.git`},
		{"a directory that cannot be entered for a while", ``, `mkdir w; git init -q t; echo "gitdir: $PWD/t/.git" >w/.git; : >x`, `chmod 0 w; mv t t2; ln -s ../out/o t; chmod 755 w`},
		{"an unreadable one moves up", ``, `mkdir -p q/1/x; git init -q q/o; echo 'gitdir: ../../o/.git' >q/1/x/.git; : >x`, `chmod 0 q/1/x/.git; mv q/1/x y; mv q/1 z; chmod 644 y/.git z/x/.git`},
		{"a link of the user's", `ln -s ../out/o l; ln -s ../out d`, `git init -q t; echo 'gitdir: t/.git' >.git; mkdir w; echo 'gitdir: ../t/.git' >w/.git; : >x`, `mv t t2; mv l t; mv l t2/l; mv t2 t`},
		{"the user's own .git file", `git init -q --bare store; echo "gitdir: ./store" >.git; mkdir w; echo "gitdir: $PWD/store" >w/.git`, `:`, `mv store s2; ln -s ../out/bare store`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, self, theirs+fmt.Sprintf("chown -R %d .. ../out", uid))
				script(t, dir, uid, c.prepare)
				var out []string
				for _, attack := range []string{c.first, c.second, c.second} {
					o, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{roleEnv + "=act"}})
					out = append(out, o)
				}
				end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", `for f in $(find . -name .git -type f); do git=$(git -C "${f%/.git}" rev-parse --absolute-git-dir) || continue
					case $git in "$PWD"/*) ;; *) echo "$f: $(cat $f): leads to $git"; exit 1; esac; done`}})
				if code != 0 {
					t.Errorf("outside: exit %d\n%s\ninside:\n%s", code, end, strings.Join(out, "\n"))
				}
			})
		}
	}
}

// TestKernelGitFilesWork is the honest side: work trees and links as their users make them.
func TestKernelGitFilesWork(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q r; cd r; echo a >a; git add a; git commit -qm one; cd ..; `
	cases := []struct{ name, script string }{
		{"worktrees in a repository and beside it", repo + `cd r; git worktree add -q w; git worktree add -q .trees/a/b; git worktree add -q ../v; for d in w .trees/a/b ../v; do git -C $d status --porcelain; git -C $d commit -qm x --allow-empty; done; git worktree list | wc -l | grep -qx 4; git worktree move ../v ../v2; git -C ../v2 status; mv ../v2 ../v3; git -C ../v3 log -1; git worktree repair ../v3; for d in w .trees/a/b ../v3; do git worktree remove $d; done; git worktree prune; cd ..; mv r r2; git -C r2 log --oneline | grep -q one`},
		{"submodules far below, which move", repo + `git init -q lib; git -C lib commit -qm l --allow-empty; cd r; mkdir -p .git/modules/d/b/c; for p in lib d/b/c/lib; do git -c protocol.file.allow=always clone -q --separate-git-dir=.git/modules/$p ../lib $p; git -C $p log -1; done; cd ..; mkdir deep; mv r deep/r; git -C deep/r/d/b/c/lib log -1; mv deep/r r; git -C r/d/b/c/lib log -1; cd r; mv d/b a2; mkdir n; mv lib n/lib`},
		{"repositories in directories that move", repo + `mkdir -p x/y/z; mv r x/y/z/r; mv x/y/z z; git -C z/r log -1; mv z/r .; git -C r log -1; rm -rf x z r; [ -z "$(ls -A)" ]`},
		{"links of all kinds", repo + `ln -s /usr usr; ln -s /no/such/place dangling; ln -s user@host.1:2 .#f; ln -s ../../../../../../x up; mkdir -p n/.bin n/p; ln -s ../p/x n/.bin/x; ln -s "$PWD/n/p" n/q; ln -s p n/modules; ln -s p n/worktrees; cp -a n m; tar cf t.tar usr dangling up m; mkdir e; tar xf t.tar -C e; mv usr usr2; mv dangling e/d; ln usr2 usr3; cd r; git worktree add -q ../w; ln -s /usr ../usr4; ln -s /nowhere l; ln -s a k; git add l k; git commit -qm l; git clone -q . ../c; [ -L ../c/l ]; rm l; git checkout l; [ -L l ]`},
		{"a bare layout whose repository is no link", repo + `git clone -q --bare r .bare; echo 'gitdir: ./.bare' >.git; : >x; git worktree add -q trunk; git worktree add -q topic; git -C trunk status; ! ln -s /usr .bare2x/y 2>/dev/null; mv trunk main; git -C main log -1 && git -C topic log -1`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
