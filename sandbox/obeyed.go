package sandbox

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// obeyed are the paths in what can be written that git obeys because a repository's configuration names them. A path that Write
// names too is the tool's.
func obeyedPaths(p Policy, in compile.Input) []string {
	if !slices.Contains(p.Files.ProtectedPatterns(), ".git/hooks") || slices.Contains(p.Open, policy.BoundFiles) {
		return nil
	}
	found := slices.Clone(in.GitState)
	shown := func(tree string) bool {
		return slices.ContainsFunc(in.Tree.Entries, func(e resolve.Entry) bool { return e.Kind == pathrule.Write && pathrule.Within(tree, e.Path) })
	}
	for _, e := range in.Tree.Entries {
		if e.Kind == pathrule.Write && e.Dir {
			found = append(found, gitobeyed.In(e.Path, shown)...)
		}
	}
	shown = func(tree string) bool {
		return slices.ContainsFunc(in.Mounts, func(put compile.MountEntry) bool {
			b, ok := put.Action.(plan.PutBind)
			return ok && b.Write && b.Dir && (pathrule.Within(tree, b.At) || pathrule.Within(tree, b.Source))
		})
	}
	for _, put := range in.Mounts {
		if b, ok := put.Action.(plan.PutBind); ok && b.Write && b.Dir {
			for _, path := range gitobeyed.In(b.Source, shown) {
				found = append(found, pathrule.Join(b.At, strings.TrimPrefix(path, b.Source)[1:]))
			}
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(path string) bool {
		return slices.Contains(p.Files.Write, path) || len(path) > pathrule.MaxPath
	})
}
