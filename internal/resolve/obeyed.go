package resolve

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Obeyed is what git obeys because a configuration names it.
type Obeyed struct {
	Paths []string // absolute, in what can be written
	Names []string // as of Files.Protect.Add: at every depth of what can be written
}

// ObeyedByGit returns what in what can be written git obeys because a configuration names it: a repository's, the user's or the machine's. With
// it are the paths that the granted repositories hold for other work trees. A path that Write names too is the tool's. If that is a
// core.hooksPath, which git takes from each work tree's top, it is so in every work tree.
func ObeyedByGit(p policy.Policy, tree Tree, mounts []MountEntry, granted []gitobeyed.Link) (o Obeyed) {
	if !slices.Contains(p.Files.ProtectedPatterns(), ".git/hooks") || slices.Contains(p.Open, policy.BoundFiles) {
		return Obeyed{}
	}
	var found, hooks, roots []string
	for _, l := range granted {
		found = append(found, l.Held...)
	}
	shown := func(dir string) bool {
		return slices.ContainsFunc(granted, func(l gitobeyed.Link) bool { return l.Tree == dir }) || slices.ContainsFunc(tree.Entries, func(e Entry) bool { return e.Kind == pathrule.Write && pathrule.Within(dir, e.Path) })
	}
	for _, e := range tree.Entries {
		if e.Kind == pathrule.Write && e.Dir {
			paths, dirs := gitobeyed.In(e.Path, shown)
			found, hooks, roots = append(found, paths...), append(hooks, dirs...), append(roots, e.Path)
		}
	}
	shown = func(dir string) bool {
		return slices.ContainsFunc(mounts, func(put MountEntry) bool {
			b, ok := put.Action.(plan.PutBind)
			return ok && b.Write && b.Dir && (pathrule.Within(dir, b.At) || pathrule.Within(dir, b.Source))
		})
	}
	for _, put := range mounts {
		if b, ok := put.Action.(plan.PutBind); ok && b.Write && b.Dir {
			paths, dirs := gitobeyed.In(b.Source, shown)
			for _, path := range paths {
				found = append(found, pathrule.Join(b.At, strings.TrimPrefix(path, b.Source)[1:]))
			}
			hooks, roots = append(hooks, dirs...), append(roots, b.At)
		}
	}
	o.Names = namesOf(p.Files, hooks, func(name string) bool {
		return slices.ContainsFunc(p.Files.Write, func(path string) bool {
			return slices.ContainsFunc(roots, func(root string) bool { return path == pathrule.Join(root, name) }) || slices.Contains(found, path) && strings.HasSuffix(path, "/"+name)
		})
	})
	slices.Sort(found)
	o.Paths = slices.DeleteFunc(slices.Compact(found), func(path string) bool {
		return slices.Contains(p.Files.Write, path) || len(path) > pathrule.MaxPath
	})
	return o
}

// namesOf returns the names of the directories of hooks, but for those that the policy protects anyway or leaves to the tool.
func namesOf(f policy.Files, hooks []string, isWritten func(name string) bool) (names []string) {
	patterns := f.ProtectedPatterns()
	for _, dir := range hooks {
		if dir != "" && isWritten(dir) {
			continue
		}
		for _, name := range gitobeyed.Names(dir) {
			if !isWritten(name) && !slices.Contains(patterns, name) && !isExcepted(f.Protect, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isExcepted reports whether Except has a name, or one above it.
func isExcepted(p policy.Protect, name string) bool {
	return slices.ContainsFunc(p.Except, func(e string) bool { return e != ".git" && pathrule.Within(name, e) })
}
