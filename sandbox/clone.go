package sandbox

import (
	"maps"
	"slices"
)

// clone returns a copy that shares nothing with p, so that a policy given to New
// is immutable. The rlimits and the filter are never written to.
func (p Policy) clone() Policy {
	f := &p.Files
	for _, list := range []*[]string{&f.Read, &f.Write, &f.Hide, &f.HideNames, &f.Private, &f.CopyOnWrite, &f.Protect.Add, &f.Protect.Except, &p.Env.Pass} {
		*list = slices.Clone(*list)
	}
	f.Make = slices.Clone(f.Make)
	p.Env.Set = maps.Clone(p.Env.Set)
	p.May, p.Open = slices.Clone(p.May), slices.Clone(p.Open)
	return p
}

// find returns the entry at exactly p. Entries are in the tree's order.
func (l layout) find(p string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(l.entries, p, func(e entry, p string) int { return treeOrder(e.path, p) })
	if !ok {
		return entry{}, false
	}
	return l.entries[i], true
}
