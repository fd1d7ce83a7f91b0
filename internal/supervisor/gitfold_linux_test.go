package supervisor

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelFoldedNamesOfGit: what is free in a git directory is not another spelling, to a file system that folds case, of what is not. It
// stands on any file system, as TestKernelFolded does.
func TestKernelFoldedNamesOfGit(t *testing.T) {
	kerneltest.Long(t)
	names := []string{"rebase-merge/GIT-REBASE-ToDO", "rebase-merge/git-rebase-todo.", "rebase-merge/GIT-RE~1", "rebase-merge/STRATEGY", "rebase-merge/Strategy_Opts", "sequencer/OPTS", "rebase-apply/APPLY-OPT", "rebase-apply/apply-opt.",
		"objects/info/ALTERNATES", "objects/info/alternates.", "objects/info/ALTERN~1", "objects/INFO/alternates", "objects/info/HTTP-ALTERNATES", "index.LOCK", "worktrees/w/rebase-merge/STRATEGY"}
	const attack = `mkdir -p .git/rebase-merge .git/rebase-apply .git/sequencer .git/worktrees/w/rebase-merge .git/objects/INFO
		for n in $NAMES; do n=.git/$n; echo evil >$n; : >x; cp x t; mv t $n; ln x $n; "$SELF" mknod $n; mkdir $n; "$SELF" exchange x $n; done
		mkdir -p .git/refs/i; echo evil >.git/refs/i/alternates; rmdir .git/objects/info .git/objects/INFO; mv .git/refs/i .git/objects/Info; ls -R .git`
	const works = `git init -q .; echo a >a; git add a; git commit -qm one; git branch ALTERNATES; git branch STRATEGY; git branch INFO/alternates; git branch "café."x; git branch A~1x 2>/dev/null || true; git tag V1; git checkout -q -b B/OPTS; echo b >a; git commit -qam two
		git branch -m B/OPTS B/GIT-REBASE-ToDO; git checkout -q master; echo c >a; git commit -qam three; ! git rebase -q B/GIT-REBASE-ToDO 2>/dev/null; echo d >a; git add a; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1; git gc -q; git pack-refs --all; git fsck; git branch -D ALTERNATES STRATEGY; git log --oneline | wc -l | grep -qx 3`
	for user, uid := range users(t) {
		t.Run("forged "+user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			script(t, dir, uid, `git init -q .; echo a >a; git add a; git commit -qm one`)
			out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", attack}, Env: []string{roleEnv + "=act", "NAMES=" + strings.Join(names, " ")}})
			check := `for n in $NAMES objects/Info; do [ ! -e .git/$n ] || { echo $n; exit 1; }; done`
			if end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", check}, Env: []string{"NAMES=" + strings.Join(names, " ")}}); code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("made: %s\ninside:\n%s", end, out)
			}
		})
		t.Run("git works "+user, func(t *testing.T) {
			t.Parallel()
			dir, rules := workspace(t, uid)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-exc", works}})
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}
