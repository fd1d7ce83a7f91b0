package resolve

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ObeyedByGit returns the paths in what can be written that git obeys because a repository's configuration names them, and with
// them what the granted repositories hold for other work trees. A path that Write names too is the tool's. By is the configuration that names
// most of them. The error is a PolicyError, which names the configuration for which not all of them can be known.
func ObeyedByGit(p policy.Policy, tree Tree, mounts []MountEntry, granted []gitobeyed.Link) (found []string, by string, err error) {
	if !slices.Contains(p.Files.ProtectedPatterns(), ".git/hooks") || slices.Contains(p.Open, policy.BoundFiles) {
		return nil, "", nil
	}
	for _, l := range granted {
		found = append(found, l.Held...)
	}
	shown := func(dir string) bool {
		return slices.ContainsFunc(granted, func(l gitobeyed.Link) bool { return l.Tree == dir }) || slices.ContainsFunc(tree.Entries, func(e Entry) bool { return e.Kind == pathrule.Write && pathrule.Within(dir, e.Path) })
	}
	most := 0
	in := func(dir string) []string {
		r := gitobeyed.In(dir, shown)
		if r.Problem != "" && err == nil {
			err = &policy.PolicyError{Field: "Files.Protect", Problem: "not all that git obeys can be held: " + errtext.Printable(r.By+" "+r.Problem), Remedy: Unnamed}
		}
		if len(r.Paths) > most {
			most, by = len(r.Paths), r.By
		}
		return r.Paths
	}
	for _, e := range tree.Entries {
		if e.Kind == pathrule.Write && e.Dir {
			found = append(found, in(e.Path)...)
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
			for _, path := range in(b.Source) {
				found = append(found, pathrule.Join(b.At, strings.TrimPrefix(path, b.Source)[1:]))
			}
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(path string) bool {
		return slices.Contains(p.Files.Write, path) || len(path) > pathrule.MaxPath
	}), by, err
}

// Unnamed is the remedy for a configuration that names too much.
const Unnamed = "remove it, if a tool or another user has left it there; if it is yours, have it name less, or run the tool in another directory"
