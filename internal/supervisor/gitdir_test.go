package supervisor

import "testing"

func TestGitClass(t *testing.T) {
	for path, want := range map[string]uint8{
		"HEAD": gitData, "HEAD.lock": gitData, "ORIG_HEAD": gitData, "COMMIT_EDITMSG~": gitData, ".MERGE_MSG.swp": gitData, "index": gitText, "index.lock": gitLock, "index.stash.12": gitData,
		"objects": gitDir, "objects/aa/bb": gitTree, "objects/info/alternates": gitKept, "objects/info/packs": gitTree, "refs/heads/hooks/config": gitTree,
		"config": gitConfig, "config.lock": gitLock, "config.worktree": gitKept, "config.worktree.lock": gitUnknown, "Config": gitUnknown, "config~": gitUnknown,
		"hooks": gitFixed, "hooks/pre-commit": gitKept, "hooks/pre-commit.sample": gitData, "hooks/d/pre-commit.sample": gitKept, "hooks.bak": gitUnknown,
		"info/attributes": gitKept, "info/exclude": gitData, "commondir": gitKept, "remotes/o": gitUnknown, "branches/o": gitUnknown, "remotes": gitFixed,
		"worktrees/w": gitDir, "worktrees/w/commondir": gitCommon, "worktrees/w/HEAD": gitData, "worktrees/w/config": gitKept, "worktrees/w/config.worktree": gitKept, "worktrees/w/hooks/x": gitKept,
		"worktrees/w/gitdir": gitText, "worktrees/w/modules/lib/hooks/x": gitKept, "worktrees/w/modules/lib/config": gitConfig, "worktrees/w/x/commondir": gitUnknown,
		"modules/lib": gitModules, "modules/a/b/hooks": gitModules, "modules/a/b/hooks/x": gitKept, "modules/a/config": gitConfig, "modules/a/config.lock": gitLock, "modules/a/b/remotes/o": gitUnknown, "modules/a/commondir": gitKept,
		"modules/config": gitModules, "modules/a/HEAD": gitModules, "modules/a/info/attributes": gitKept, "modules/a/tABCDEF": gitProbe,
		"rebase-merge/git-rebase-todo": gitText, "rebase-merge/sedABCDEF": gitTree, "rebase-merge/git-rebase-todo.lock": gitLock, "sequencer/opts": gitText, "sequencer/todo": gitTree,
		"git-interpret-trailers-ABCDEF": gitData, "git-interpret-trailers-ABCDEFG": gitUnknown, "tABCDEF": gitProbe, "fsmonitor--daemon.ipc": gitUnknown, "svn/x": gitUnknown, "": gitUnknown, "CONFIG": gitUnknown, "HOOKS": gitUnknown, "INFO": gitUnknown, "gitdir": gitUnknown,
	} {
		m := &matcher{}
		m.n = uint(copy(m.path[:], path))
		if got := m.gitClass(0); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]uint8{"modules/a/HOOKS/x": gitKept, "modules/a/b/Con\ufb01g": gitConfig, "modules/a/h\u200dooks/x": gitKept, "modules/caf\u00e9/HEAD": gitModules,
		"rebase-merge/GIT-REBASE-ToDO": gitKept, "rebase-merge/git-rebase-todo.": gitKept, "rebase-merge/GIT-RE~1": gitKept, "rebase-merge/git-rebase-todo::$DATA": gitKept, "rebase-merge/STRATEGY": gitKept,
		"rebase-merge/git-rebase-\u200ctodo": gitKept, "rebase-merge/\u017ftrategy_opts. .": gitKept, "sequencer/OPTS": gitKept, "rebase-apply/APPLY-OPT": gitKept, "rebase-apply/APPLY-~1": gitKept,
		"objects/info/ALTERNATES": gitKept, "objects/INFO/alternates": gitKept, "objects/info./alternates": gitKept, "objects/info/HTTP-A~1": gitKept, "objects/Info": gitDir, "index.LOCK": gitKept, "index.lock.": gitKept,
		"worktrees/w/rebase-merge/STRATEGY": gitKept, "hooks/pre-commit:.sample": gitKept, "info/exclude.": gitData, "sequencer/opts.LOCK": gitKept,
		"refs/heads/ALTERNATES": gitTree, "refs/heads/STRATEGY": gitTree, "refs/heads/x/GIT-REBASE-ToDO": gitTree, "refs/heads/INFO/alternates": gitTree, "refs/remotes/origin/HEAD": gitTree, "logs/HEAD": gitTree, "HEAD": gitData,
		"ORIG_HEAD": gitData, "COMMIT_EDITMSG~": gitData, "COMMIT_EDITMSG": gitData, ".MERGE_MSG.swp": gitData, "MERGE_RR": gitText, "MERGE_RR.lock": gitLock, "hooks/pre-push.sample": gitData, "hooks/PRE-PUSH.sample": gitData,
		"objects/pack/tmp_pack_XaYbZc": gitTree, "objects/pack/tmp_idx_XY~1": gitTree, "objects/12/tmp_obj_AbCdEf": gitTree, "rebase-merge/sedABCDEF": gitTree, "rebase-merge/git-rebase-todo.backup": gitTree, "rebase-merge/git-rebase-todo~": gitTree,
		"rebase-merge/.git-rebase-todo.swp": gitTree, "lfs/objects/ab/AB:1": gitTree, "refs/heads/caf\u00e9.": gitTree, "index.stash.12": gitData, "NOTES_MERGE_WORKTREE/AB~1": gitTree, "HEAD.lock": gitData, "sedABCDEF": gitData, "t_ABCDE": gitProbe} {
		m := &matcher{fold: true}
		m.n = uint(copy(m.path[:], path))
		if got := m.gitClass(0); got != want || m.n != uint(len(path)) {
			t.Errorf("%s, folded: %d, want %d", path, got, want)
		}
	}
}
