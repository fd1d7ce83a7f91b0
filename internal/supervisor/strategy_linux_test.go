package supervisor

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelStrategies: git runs git-merge-STRATEGY with the options beside it, so that strategy index is a program with a program for an
// argument. Nothing but git's own strategies and their options stands in a rebase or a series of picks; and these go on working.
func TestKernelStrategies(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; git checkout -qb b; echo b >a; git commit -qam two; echo bb >bb; git add bb; git commit -qm three; git checkout -q master; echo c >a; git commit -qam four; `
	const attack = `mkdir -p -- --x .git/rebase-merge .git/rebase-apply .git/sequencer; printf '#!/bin/sh\ntouch PWNED\n' >--x/evil; chmod +x ./--x/evil
		put() { printf "$2" >"$1"; : >y; printf "$2" >t; cp t "$1"; : >y; mv t "$1"; printf "$2" >t; ln t "$1"; "$SELF" exchange t "$1"; set -C; printf "$2" >"$1.lock"; set +C; mv "$1.lock" "$1"; rm -f t; : >y; }
		for d in rebase-merge rebase-apply; do put .git/$d/strategy 'index\n'; put .git/$d/strategy_opts ' --x/evil\n'; put .git/$d/strategy_opts ' --index-output=.envrc\n'; done
		put .git/sequencer/opts '[options]\n\tstrategy = index\n\tstrategy-option = x\n'`
	const gone = `for f in rebase-merge/strategy rebase-merge/strategy_opts rebase-apply/strategy rebase-apply/strategy_opts sequencer/opts; do [ ! -e .git/$f ] || ! grep -e index -e evil .git/$f || exit 1; done`
	works := map[string]string{
		"a rebase with a strategy": `git checkout -q b; git rebase -s ort -X patience -X find-renames=50% -X ignore-space-change master >/dev/null 2>&1 && exit 1; : >y; grep -qx ort .git/rebase-merge/strategy; grep -q -e '--patience --find-renames=50%' .git/rebase-merge/strategy_opts
			echo d >a; git add a; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1; git log --oneline | wc -l | grep -qx 4`,
		"a rebase with options alone": `git checkout -q b; git rebase -q -X theirs master 2>&1; [ "$(cat a)" = b ]; git reset -q --hard HEAD~2; git rebase -q -s resolve master; git rebase -q -s subtree -X histogram HEAD~1`,
		"picks":                       `echo e >e; git add e; git commit -qm e; git cherry-pick -X ours b~1 --allow-empty --keep-redundant-commits >/dev/null; git cherry-pick -s -x --strategy=resolve b~1 b >/dev/null 2>&1 && exit 1; grep -q 'strategy = resolve' .git/sequencer/opts; echo d >a; git add a; GIT_EDITOR=true git cherry-pick --continue >/dev/null 2>&1; [ -e bb ]`,
		"picks with options":          `git cherry-pick -X histogram -X ignore-all-space b~1 b >/dev/null 2>&1 && exit 1; grep -q 'strategy-option = ignore-all-space' .git/sequencer/opts; git cherry-pick --abort; git cherry-pick -X theirs b~1 b >/dev/null; [ "$(cat a)" = b ]`,
		"reverts":                     `git checkout -q b; git revert --no-edit -X ours --strategy=recursive HEAD HEAD~1 >/dev/null; [ "$(cat a)" = a ]; git checkout -q master; git merge -q -s recursive -X ours b~2; git revert --no-edit -m 1 -X theirs HEAD >/dev/null; [ ! -e bb ]`,
	}
	for user, uid := range users(t) {
		t.Run("forged "+user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, repo)
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{roleEnv + "=act"}})
			if end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", gone}}); code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("outside: exit %d\n%s\ninside:\n%s", code, end, out)
			}
		})
		for name, text := range works {
			t.Run(name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-exc", repo + text}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
