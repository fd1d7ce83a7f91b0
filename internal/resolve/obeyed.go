package resolve

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Obeyed is what git obeys because a configuration names it.
type Obeyed struct {
	Paths  []string // absolute, in what can be written; with them is what links at protected names lead to
	Names  []string // as of Files.Protect.Add: at every depth of what can be written
	Hidden []string // what links at names of Files.HideNames lead to
	By     string   // the configuration that names most of Paths
}

// ObeyedByGit returns what in what can be written git obeys because a configuration names it: a repository's, the user's or the machine's. With
// it are the paths that the granted repositories hold for other work trees, and where links at protected names lead. A path that Write names too is the tool's. If that is a
// core.hooksPath, which git takes from each work tree's top, it is so in every work tree. The error is a PolicyError, which names the configuration for
// which not all of it can be known.
func ObeyedByGit(p policy.Policy, tree Tree, mounts []MountEntry, granted []gitobeyed.Link) (o Obeyed, err error) {
	names := p.Files.ProtectedPatterns()
	if slices.Contains(p.Open, policy.BoundFiles) {
		return Obeyed{}, nil
	}
	git := slices.Contains(names, ".git/hooks")
	var found, hooks, roots []string
	for _, l := range granted {
		if git {
			found = append(found, l.Held...)
		}
	}
	shown := func(dir string) bool {
		around, ok := tree.Around(dir)
		return ok && around.Kind == pathrule.Write || slices.ContainsFunc(granted, func(l gitobeyed.Link) bool { return l.Tree == dir })
	}
	most := 0
	in := func(dir, at string) []string {
		var secret gitobeyed.Found
		if len(p.Files.HideNames) > 0 {
			secret = gitobeyed.Links(dir, p.Files.HideNames)
		}
		for _, path := range secret.Paths {
			o.Hidden = append(o.Hidden, pathrule.Join(at, strings.TrimPrefix(path, dir)[1:]))
		}
		r := gitobeyed.Links(dir, names)
		r.Problem = cmp.Or(secret.Problem, r.Problem)
		if links := r.Paths; git && r.Problem == "" {
			r = gitobeyed.In(dir, shown)
			r.Paths = append(r.Paths, links...)
		}
		if r.Problem != "" && err == nil {
			err = &policy.PolicyError{Field: "Files.Protect", Problem: "not all that git obeys can be held: " + errtext.Printable(r.By+" "+r.Problem), Remedy: Unnamed}
		}
		if len(r.Paths) > most {
			most, o.By = len(r.Paths), r.By
		}
		hooks, roots = append(hooks, r.Hooks...), append(roots, at)
		return r.Paths
	}
	for _, e := range tree.Entries {
		if e.Kind == pathrule.Write && e.Dir {
			found = append(found, in(e.Path, e.Path)...)
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
			for _, path := range in(b.Source, b.At) {
				found = append(found, pathrule.Join(b.At, strings.TrimPrefix(path, b.Source)[1:]))
			}
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
	return o, err
}

// Unnamed is the remedy for a configuration that names too much.
const Unnamed = "remove it, if a tool or another user has left it there; if it is yours, have it name less, or run the tool in another directory"

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
