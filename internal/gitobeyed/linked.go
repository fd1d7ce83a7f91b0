package gitobeyed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Link is a directory whose .git is a file, and the repository that it belongs to.
type Link struct {
	Repository string   // the directory, free of links, that git writes to: a worktree's common directory, or a submodule's own
	Written    string   // the same by the name that the .git file uses, absolute; links may be on its way
	Tree       string   // the work tree, free of links; the caller's to set
	Held       []string // what in Repository belongs to other work trees than this one
}

// Linked finds the repository of the linked worktree or submodule at dir, which is absolute and free of links. A .git file can have
// been forged, so the repository has to name dir in return: a worktree's by worktrees/NAME/gitdir, a submodule's by core.worktree. It
// has to have the shape of a git directory, and to belong to this process's user or to dir's owner. Where dir/.git is no file there is
// none; where something is wrong, problem says what. A repository that only lacks
// that proof is returned, too.
func Linked(dir string) (l Link, problem string) {
	file := dir + "/.git"
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return Link{}, ""
	}
	text, err := read(file)
	named, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), "gitdir: ")
	if err != nil || !ok || named == "" || strings.ContainsAny(named, "\x00\n") {
		return Link{}, "its .git file names no directory"
	}
	named = from(dir, named)
	git, err := filepath.EvalSymlinks(named)
	if err != nil {
		return Link{}, "the directory that its .git file names, " + named + ", cannot be reached"
	}
	l.Repository, l.Written = git, named
	if there(git + "/commondir") {
		if problem = l.worktree(dir, git); problem != "" {
			return Link{}, problem
		}
	} else if !returns(dir, worktreeOf(git)) {
		return l, git + " does not name it in return, by core.worktree or as a linked worktree's directory does; if it is the work tree's (git init --separate-git-dir), name it in Files.Write"
	}
	return l.checked(dir, git)
}

// worktree finds the common directory of the linked worktree at dir.
func (l *Link) worktree(dir, git string) (problem string) {
	text, err := read(git + "/commondir")
	common, evalErr := filepath.EvalSymlinks(from(git, strings.TrimSpace(text)))
	if err != nil || evalErr != nil || filepath.Dir(git) != common+"/worktrees" {
		return "the commondir of " + git + " does not name the repository around it"
	}
	back, err := read(git + "/gitdir")
	back, ok := strings.CutSuffix(strings.TrimRight(back, "\r\n"), "/.git")
	if err != nil || !ok || !returns(dir, from(git, back)) {
		return "the gitdir of " + git + " does not name it in return"
	}
	l.Repository, l.Written = common, strings.TrimSuffix(filepath.Clean(l.Written), "/worktrees/"+filepath.Base(git))
	for _, name := range mainState {
		l.Held = append(l.Held, common+"/"+name)
	}
	return ""
}

// checked demands shape and owner.
func (l Link) checked(dir, git string) (Link, string) {
	repo := l.Repository
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Lstat(repo + "/" + name); err != nil || !info.IsDir() {
			return Link{}, repo + " does not have the shape of a git directory"
		}
	}
	if !there(repo+"/HEAD") || !there(git+"/HEAD") {
		return Link{}, repo + " does not have the shape of a git directory"
	}
	own := []int{os.Geteuid(), owner(dir)}
	if !slices.Contains(own, owner(repo)) || !slices.Contains(own, owner(git)) {
		return Link{}, repo + " belongs to another user"
	}
	if repo == "/" || strings.HasPrefix(dir, repo+"/") {
		return Link{}, repo + " lies around it"
	}
	if l.Written = filepath.Clean(l.Written); !leadsTo(l.Written, repo) {
		l.Written = repo
	}
	return l, ""
}

// returns reports whether a path that a repository has leads to dir.
func returns(dir, tree string) bool { return tree != "" && leadsTo(tree, dir) }

func leadsTo(p, real string) bool {
	at, err := filepath.EvalSymlinks(p)
	return err == nil && at == real
}

// worktreeOf returns the work tree that a git directory's configuration names, or "".
func worktreeOf(git string) (tree string) {
	for _, s := range settings(git + "/config") {
		if s.key == "core.worktree" && s.value != "" {
			tree = from(git, s.value)
		}
	}
	return tree
}

// mainState is what in a repository belongs to its main work tree alone, which a linked one has in worktrees/NAME: all that
// git's path.c does not have in its common_list, but for logs and refs, whose owners git mixes.
var mainState = []string{
	"HEAD", "index", "index.lock", "config.worktree", "info/sparse-checkout", "rebase-merge", "rebase-apply", "sequencer", "NOTES_MERGE_WORKTREE",
	"ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "MERGE_RR.lock", "MERGE_AUTOSTASH", "AUTO_MERGE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD",
	"BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS", "BISECT_RUN", "BISECT_HEAD", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_FIRST_PARENT",
	"NOTES_MERGE_PARTIAL", "NOTES_MERGE_REF", "COMMIT_EDITMSG",
}
