package gitobeyed

import (
	"path/filepath"
	"strings"
)

// hooksBelow returns the directories at the end of a core.hooksPath, which lies in whatever directory git works in; false: the path is absolute, or
// of a home. What stands before a ".." leads anywhere, links being what they are, so it is left out.
func hooksBelow(value string) (dir string, relative bool) {
	if value == "" || filepath.IsAbs(value) || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%(") || strings.ContainsRune(value, 0) {
		return "", false
	}
	var parts []string
	for part := range strings.SplitSeq(value, "/") {
		switch part {
		case "", ".":
		case "..":
			parts = nil
		default:
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/"), true
}

// Names returns the names of a directory of hooks, one of those that In returns, that are protected at every depth. That is the directory, unless
// its name is an ordinary one, as "hooks" is: there may be many of that name in a tree, which have nothing to do with git. Of these it is
// what git runs in it; of the work tree itself, too, and of a directory with a name that no pattern of package protected can stand for.
func Names(dir string) []string {
	parts := strings.Split(dir, "/")
	switch {
	case dir == "" || strings.Contains(dir, "*") || len(parts) > mostParts || longest(parts) > 255:
		return hooksIn("")
	case len(parts) > 1, dir[0] == '.' && !strings.EqualFold(dir, ".git"):
		return []string{dir}
	}
	return hooksIn(dir + "/")
}

const mostParts = 15 // a pattern has at most 16 components: see appendPattern of package supervisor

func longest(parts []string) (size int) {
	for _, p := range parts {
		size = max(size, len(p))
	}
	return size
}

func hooksIn(prefix string) (names []string) {
	for _, name := range hookNames {
		names = append(names, prefix+name)
	}
	return names
}

// hookNames are those of githooks(5).
var hookNames = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update",
	"reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman",
	"p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit", "post-index-change",
}
