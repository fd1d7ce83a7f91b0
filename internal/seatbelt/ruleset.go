package seatbelt

// An index finds, for one operation and a query, the last rule whose filter matches,
// without asking every rule: equal paths and names, and directories, are found by
// their text, and only what is left (regular expressions, addresses, require-not) is tried
// one by one, from the last on.
type index struct {
	ops   map[string]*ruleset
	built int // entries; for tests
}

// A ruleset is the rules of one operation name.
type ruleset struct {
	unfiltered int // the last rule without a filter; -1: none
	paths      map[string][]entry
	dirs       map[string][]entry
	prefixes   prefixes
	facts      map[string]map[string][]entry // by the fact's name
	factNames  []string                      // sorted: which filter a verdict cites must not be chance
	rest       []entry
}

// An entry is a filter of a rule, found by its key. If check, the key is only part of it.
type entry struct {
	rule   int
	filter *Filter
	check  bool
}

// prefixes are looked up by each length that there is one of.
type prefixes struct {
	lengths []int // sorted, longest first
	of      map[string][]entry
}
