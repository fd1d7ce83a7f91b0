package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A workspace that lies in a sub-directory of a work tree: git works there, the work tree around it is shown and cannot be written,
// and what git obeys stays as it is.
func TestKernelGitWorksInASubdirectory(t *testing.T) {
	kerneltest.Heavy(t) // a linked work tree takes the same grants
	kerneltest.Parallel(t)
	const sub = `mkdir -p main/sub/deep main/other; cd main; echo s > sub/s; echo o > other/o; git add .; git commit -qm sub; printf '#!/bin/sh\nexit 0\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; cd ..
		cat main/.git/hooks/pre-commit main/a main/other/o | cksum > before`
	const unchanged = `test "$(cat main/.git/hooks/pre-commit main/a main/other/o | cksum)" = "$(cat before)"; test -z "$(find main -name new)"; git -C main fsck; git -C main status --porcelain | wc -l | grep -qx 0`
	const use = `git status --porcelain | wc -l | grep -qx 0; test "$(git rev-parse --show-prefix)" = sub/; git ls-files | grep -qx s; cat ../other/o; echo x >> s; git diff --stat | grep -q sub/s; git add .; git commit -qm tool; git log --oneline -- . | wc -l | grep -qx 2
		git checkout -q -b topic; echo y > y; git add y; git stash -q; git stash pop -q; git commit -qm y; git checkout -q main; git merge -q topic; git branch -d topic; git show HEAD:./y | grep -qx y; git mv y z; git commit -qm z; git tag v1; git gc -q; cd deep; git status --porcelain | wc -l | grep -qx 0`
	attacks := func(git string) string {
		return strings.ReplaceAll(`
			echo x >> ../a
			echo x > ../new
			rm ../other/o
			mv ../other ../o
			ln -s /etc ../new
			ln ../a hard && echo x >> hard
			chmod 777 ../a
			git checkout -q HEAD~1 -- ../other ../a && echo x >> ../a
			echo x > GIT/hooks/post-checkout
			echo x >> GIT/hooks/pre-commit
			mv GIT/hooks GIT/old
			chmod 777 GIT/hooks/pre-commit
			git config core.hooksPath $PWD
			git config core.fsmonitor /tmp/x
			git config include.path /tmp/x
			git config core.worktree /tmp && git config core.worktree
			echo x > GIT/config
			echo x > GIT/info/attributes
			echo /tmp > GIT/commondir
			echo /tmp > GIT/objects/info/alternates
			echo 'gitdir: /tmp' > ../.git
			mv GIT ../old
			rm -rf GIT/hooks`, "GIT", git)
	}
	eachGitCase(t, []gitCase{
		{name: "a sub-directory", dir: "main/sub", make: sub, script: use, fails: attacks("../.git"), after: unchanged},
		{name: "two levels down", dir: "main/sub/deep", make: sub, script: `git status --porcelain | wc -l | grep -qx 0; echo x > x; git add x; git commit -qm x; cat ../s`, fails: `echo x >> ../s
			git rm -q ../s`, after: unchanged},
		{name: "of a linked worktree", dir: "ws/sub", make: sub + `; git -C main worktree add -q -b side ../ws; cat main/.git/index main/.git/HEAD | cksum > state`,
			script: `git status --porcelain | wc -l | grep -qx 0; echo x >> s; git commit -qam tool; git log --oneline | wc -l | grep -qx 4; cat ../other/o`,
			fails: attacks("$BASE/main/.git") + `
				echo x > $BASE/main/.git/index
				echo x > $BASE/main/.git/HEAD
				cat $BASE/main/a`, after: unchanged + `; test "$(cat main/.git/index main/.git/HEAD | cksum)" = "$(cat state)"`},
		{name: "of a submodule", dir: "super/lib/sub", make: sub + `; git init -q super; cd super; git submodule --quiet add ../main lib; git commit -qm lib`,
			script: `git status --porcelain | wc -l | grep -qx 0; echo x >> s; git commit -qam tool`, fails: `echo x > ../../.git/modules/lib/hooks/post-checkout
				cat ../../.gitmodules
				cat ../../.git/HEAD`},
		{name: "reached by a link", dir: "link", make: sub + `; ln -s main/sub link`, script: `git status --porcelain | wc -l | grep -qx 0; echo x >> s; git commit -qam tool`, fails: attacks("$BASE/main/.git"), after: unchanged},
		{name: "with other worktrees", dir: "main/sub", make: sub + `; git -C main worktree add -q -b other ../w`, script: `git status --porcelain | wc -l | grep -qx 0; echo x >> s; git commit -qam tool`,
			fails: `git worktree prune; test ! -e ../.git/worktrees/w
				echo x > ../.git/worktrees/w/HEAD`, after: unchanged + "; git -C w status"},
		{name: "a directory that git ignores", dir: "main/build", make: sub + `; echo /build/ > main/.gitignore; git -C main add .gitignore; git -C main commit -qm i; mkdir main/build`, script: `git status --porcelain | wc -l | grep -qx 0; echo x > x; git check-ignore -q x`, after: unchanged},
		{name: "to read alone", dir: "main/sub", make: sub, change: func(p *Policy) { p.Files.Read, p.Files.Write = append(p.Files.Read, p.Files.Write...), nil }, script: `git status --porcelain | wc -l | grep -qx 0; git log --oneline; git diff; cat ../other/o`,
			fails: `echo x > x
				git commit -q --allow-empty -m x
				echo x > ../.git/new`, after: unchanged},
	})
}
