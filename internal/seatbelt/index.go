package seatbelt

import (
	"maps"
	"slices"
	"strings"
)

func newIndex(rules []Rule) *index {
	ix := &index{ops: map[string]*ruleset{}}
	for i := range rules {
		for _, op := range rules[i].Operations {
			s := ix.ops[op]
			if s == nil {
				s = &ruleset{unfiltered: -1, paths: map[string][]entry{}, dirs: map[string][]entry{}, facts: map[string]map[string][]entry{}}
				s.prefixes.of = map[string][]entry{}
				ix.ops[op] = s
			}
			if len(rules[i].Filters) == 0 {
				s.unfiltered = i
			}
			for j := range rules[i].Filters {
				f := &rules[i].Filters[j]
				ix.built += s.add(entry{rule: i, filter: f}, f)
			}
		}
	}
	for _, s := range ix.ops {
		s.finish()
	}
	return ix
}

func (s *ruleset) finish() {
	s.factNames = slices.Sorted(maps.Keys(s.facts))
	lengths := map[int]bool{}
	for p := range s.prefixes.of {
		lengths[len(p)] = true
	}
	s.prefixes.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(s.prefixes.lengths)
}

// add files an entry under what key, its filter or a part of that, looks for. It
// returns how many entries it made.
func (s *ruleset) add(e entry, key *Filter) int {
	k := kindNamed(key.Kind)
	switch k.how {
	case pathIs:
		return put(s.paths, e, key.Args)
	case pathBelow:
		return put(s.dirs, e, key.Args)
	case pathBegins:
		return put(s.prefixes.of, e, key.Args)
	case factIs:
		if s.facts[k.fact] == nil {
			s.facts[k.fact] = map[string][]entry{}
		}
		return put(s.facts[k.fact], e, key.Args)
	case combined:
		if key.Kind == "require-any" && !e.check {
			n := 0
			for i := range key.Sub {
				n += s.add(e, &key.Sub[i])
			}
			return n
		}
		if key.Kind == "require-all" {
			e.check = true
			for i := range key.Sub {
				if how := kindNamed(key.Sub[i].Kind).how; how == pathIs || how == pathBelow || how == pathBegins || how == factIs {
					return s.add(e, &key.Sub[i])
				}
			}
		}
	}
	e.check = true
	s.rest = append(s.rest, e)
	return 1
}

func put(m map[string][]entry, e entry, keys []string) int {
	for _, k := range keys {
		m[k] = append(m[k], e)
	}
	return len(keys)
}

// last is the last rule whose filter matches, and that filter; -1 if none does.
func (s *ruleset) last(q *asked) (int, *Filter) {
	best, by := -1, (*Filter)(nil)
	try := func(list []entry) {
		for i := len(list) - 1; i >= 0 && list[i].rule > best; i-- {
			q.work++
			if !list[i].check || list[i].filter.matches(q) {
				best, by = list[i].rule, list[i].filter
				return
			}
		}
	}
	for _, p := range [...]string{q.Path, q.Alias} {
		if p == "" {
			continue
		}
		try(s.paths[p])
		for dir := p; dir != ""; dir = dir[:strings.LastIndexByte(dir, '/')] {
			try(s.dirs[dir])
		}
		try(s.dirs["/"])
		for _, n := range s.prefixes.lengths {
			if n <= len(p) {
				try(s.prefixes.of[p[:n]])
			}
		}
	}
	for _, name := range s.factNames {
		if v, known := q.fact(name); known {
			try(s.facts[name][v])
		}
	}
	try(s.rest)
	return best, by
}
