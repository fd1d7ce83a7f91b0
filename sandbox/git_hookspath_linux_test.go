package sandbox

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// F27: a relative core.hooksPath counts in every work tree, also in those that the tool makes: it plants hooks there, which the user's
// git runs. What stands for the hook is post-index-change, which git status runs.
func TestKernelAttackHooksOfANewWorkTree(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const plant = `mkdir -p D; printf '#!/bin/sh\ntouch $BASE/ran\n' > D/post-index-change; chmod +x D/post-index-change`
	fails := func(dirs ...string) string {
		var lines []string
		for _, dir := range dirs {
			lines = append(lines, strings.ReplaceAll(plant, "D", dir))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	const sub = `rm -rf ws; git clone -q main ws; `
	const look = `for d in ws/wt ws/n ws/new ws/a/b/new; do test ! -e $d/.git || { touch $d/a; git -C $d status >/dev/null; }; done; test ! -e ran`
	const moves = `mkdir -p t/hooks; mkdir -p x; mv t x/scripts
		rm -rf n/scripts; ln -sT t n/scripts
		mkdir -p n/scripts; ln -sT ../../t n/scripts/hooks
		mkdir -p n/scripts t/hooks; mv -T t/hooks n/scripts/hooks
		mkdir n/Scripts n/Scripts/Hooks
		mkdir -p o/scripts; mv o/scripts o/other`
	eachGitCase(t, []gitCase{
		{name: "a linked worktree", dir: "ws", make: sub + `git -C ws config core.hooksPath scripts/hooks`, script: `git worktree add -q wt -b agent; echo x >> wt/a; git -C wt commit -qam tool; mkdir -p wt/scripts; echo x > wt/scripts/build.sh; mkdir hooks; echo x > hooks/x`,
			fails: fails("wt/scripts/hooks", "wt/./Scripts/HOOKS"), after: look},
		{name: "a second .git file", dir: "ws", make: sub + `git -C ws config core.hooksPath scripts/hooks`, script: `mkdir n; echo 'gitdir: ../.git' > n/.git; cp a n/a`,
			fails: fails("n/scripts/hooks") + moves, after: look},
		{name: "the directory before the work tree", dir: "ws", make: sub + `git -C ws config core.hooksPath scripts/hooks`, script: `true`, fails: fails("n/scripts/hooks", "a/b/new/scripts/hooks"), after: look},
		{name: "a new repository, by the user's configuration", dir: "ws", make: `git config --global core.hooksPath tools/hooks`, script: `git init -q new; git init -q a/b/new; echo x > new/a; git -C new add a; git -C new commit -qm a`,
			fails: fails("new/tools/hooks", "a/b/new/tools/hooks", "tools/hooks"), after: look},
		{name: "of one work tree", dir: "ws", make: sub + `git -C ws config extensions.worktreeConfig true; git -C ws config --worktree core.hooksPath scripts/hooks`, script: `mkdir n; echo 'gitdir: ../.git' > n/.git; cp a n/a`,
			fails: fails("n/scripts/hooks"), after: look},
		{name: "of an included file", dir: "ws", make: sub + `printf '[core]\n\thooksPath = scripts/hooks\n' > home/more; git config --global includeIf.gitdir:$PWD/ws/.path $PWD/home/more`, script: `git worktree add -q wt -b agent`,
			fails: fails("wt/scripts/hooks"), after: look},
		{name: "a directory of an ordinary name", dir: "ws", make: sub + `git -C ws config core.hooksPath hooks`, script: `git worktree add -q wt -b agent; mkdir -p wt/src/hooks wt/hooks; echo x > wt/src/hooks/useState.ts; echo x > wt/hooks/useState.ts; echo x > hooks.txt
			git -C wt add .; git -C wt commit -qm tool; git -C wt mv src/hooks/useState.ts src/hooks/u.ts; git branch feature/hooks; git -C wt checkout -q feature/hooks; mkdir l; cp -r .git/refs l; rm -r l`,
			fails: fails("wt/hooks") + "mkdir -p t; rm -rf wt/hooks; echo x > t/post-index-change; mv -T t wt/hooks\nrm -rf wt/hooks; mkdir -p t; ln -sT ../t wt/hooks", after: look},
		{name: "the work tree itself", dir: "ws", make: sub + `git -C ws config core.hooksPath .`, script: `git worktree add -q wt -b agent; echo x > wt/x`,
			fails: "echo '#!/bin/sh' > wt/post-index-change\necho x > wt/pre-commit", after: look},
	})
}

// A directory of hooks that Write names is the tool's, in every work tree; and the report says so.
func TestKernelHooksThatWriteNamesAreTheTools(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachGitCase(t, []gitCase{{
		name: "Write names it", dir: "ws", make: `rm -rf ws; git clone -q main ws; git -C ws config core.hooksPath scripts/hooks; mkdir -p ws/scripts/hooks`,
		change: func(p *Policy) { p.Files.Write = append(p.Files.Write, p.Files.Write[0]+"/scripts/hooks") },
		script: `git worktree add -q wt -b agent; mkdir -p wt/scripts/hooks; echo x > wt/scripts/hooks/x; echo x > scripts/hooks/x`,
	}})
}
