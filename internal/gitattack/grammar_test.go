package gitattack

import (
	"math/rand/v2"
	"strings"
)

// The names that git reads in a repository: gitrepository-layout(5), githooks(5), and the calls of git_path in git's
// source for the state of merges, rebases, bisections and mails.

var hookNames = strings.Fields(`pre-commit post-commit commit-msg prepare-commit-msg pre-merge-commit post-merge post-checkout post-rewrite pre-rebase pre-push
	pre-auto-gc post-index-change reference-transaction applypatch-msg pre-applypatch post-applypatch pre-receive update post-receive post-update proc-receive
	push-to-checkout fsmonitor-watchman sendemail-validate`)

var stateNames = strings.Fields(`HEAD ORIG_HEAD FETCH_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD SQUASH_MSG COMMIT_EDITMSG
	TAG_EDITMSG EDIT_DESCRIPTION NOTES_EDITMSG MERGE_AUTOSTASH BISECT_START BISECT_LOG BISECT_NAMES BISECT_TERMS BISECT_RUN BISECT_EXPECTED_REV BISECT_ANCESTORS_OK BISECT_FIRST_PARENT
	BISECT_HEAD description index packed-refs shallow gc.pid gc.log config config.worktree commondir gitdir locked fsmonitor--daemon.ipc addp-hunk-edit.diff
	info/attributes info/exclude info/grafts info/refs info/sparse-checkout remotes/origin remotes/evil branches/origin branches/evil
	objects/info/alternates objects/info/packs objects/info/http-alternates objects/info/commit-graph objects/info objects/pack objects/ab objects
	refs/heads/main refs/heads/topic refs/heads/x refs/remotes/origin/HEAD refs/remotes/origin/main refs/stash refs/tags/v refs/bisect/bad refs/replace refs refs/heads refs/rewritten/onto
	logs/HEAD logs/refs/heads/main logs/refs/stash logs/refs/remotes/origin/main logs/refs logs NOTES_MERGE_WORKTREE sharedindex.0 rr-cache/x/preimage rr-cache/x/postimage`)

var rebaseNames = strings.Fields(`rebase-merge/git-rebase-todo rebase-merge/git-rebase-todo.backup rebase-merge/done rebase-merge/head-name rebase-merge/onto rebase-merge/orig-head
	rebase-merge/interactive rebase-merge/msgnum rebase-merge/end rebase-merge/strategy rebase-merge/strategy_opts rebase-merge/gpg_sign_opt rebase-merge/author-script
	rebase-merge/message rebase-merge/message-squash rebase-merge/message-fixup rebase-merge/current-fixups rebase-merge/amend rebase-merge/stopped-sha rebase-merge/patch
	rebase-merge/rewritten-list rebase-merge/rewritten-pending rebase-merge/squash-onto rebase-merge/refs-to-delete rebase-merge/autostash rebase-merge/update-refs rebase-merge/trailer rebase-merge
	rebase-apply/next rebase-apply/last rebase-apply/applying rebase-apply/rebasing rebase-apply/apply-opt rebase-apply/0001 rebase-apply/head-name rebase-apply/onto rebase-apply/orig-head
	rebase-apply/author-script rebase-apply/final-commit rebase-apply/patch rebase-apply/rewritten rebase-apply/abort-safety rebase-apply/threeway rebase-apply
	sequencer/todo sequencer/opts sequencer/head sequencer/abort-safety sequencer`)

// gitDirs are places where a git directory is, or where the tool makes one.
var gitDirs = []string{".git", ".git", ".git", ".git/modules/lib", ".git/modules/m", ".git/modules/a/b", ".git/worktrees/wt", ".git/worktrees/w", ".git/worktrees/wt/modules/lib", ".bare", ".bare/worktrees/trunk",
	"repo.dir", "evil", "x/.git", "src", "", "lib", "wt", "x", ".GIT", ".git/modules/lib/modules/inner", "repo.git"}

// workNames are names in a work tree.
var workNames = []string{"a", "d/b", "n", ".git", "lib/.git", "wt/.git", "x/.git", "s/.git", "trunk/.git", ".gitmodules", ".gitattributes", ".gitconfig", "evil/config", "evil/HEAD", "evil/hooks/pre-receive", "evil/hooks/post-checkout",
	"evil/program", "evil/attributes", "git-merge-x/evil", "evil", "s", "x", "lib", "wt", "src", ".git/worktrees/w/d", "evil/sub", "evil/refs", "evil/objects"}

// outsideTexts are what the tool lets links lead to.
func outsideTexts(w *world) []string {
	return []string{w.victim, w.victim + "/file", w.victim + "/new", w.home + "/.bashrc", w.home, "../victim/file", "../../victim/dir", "../../../victim/new", w.ws + "/evil", "evil", "../evil", "config", "hooks",
		"/proc/self/cwd/evil", "/proc/self/root" + w.ws + "/evil", w.home + "/.ssh/id"}
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// gitName draws a name that git reads.
func gitName(r *rand.Rand) string {
	dir := pick(r, gitDirs)
	if dir != "" {
		dir += "/"
	}
	name := ""
	switch n := r.IntN(20); {
	case n < 3:
		name = dir + "hooks/" + pick(r, hookNames)
	case n < 7:
		name = dir + pick(r, rebaseNames)
	case n < 9:
		return pick(r, workNames)
	case n < 11:
		name = dir + pick(r, []string{"config", "commondir", "gitdir", "config.worktree", "HEAD", "index", "info/attributes", "hooks"})
	default:
		name = dir + pick(r, stateNames)
	}
	switch r.IntN(16) {
	case 0:
		name += ".lock"
	case 1:
		name = strings.ToUpper(name)
	}
	return name
}

// fixtureNames are the fixtures to draw from.
var fixtureNames []string
