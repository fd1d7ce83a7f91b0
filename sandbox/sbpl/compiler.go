package sbpl

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A compiler makes a policy of a profile. What it decides it asks of the
// profile; what it cannot hold it writes down at the rule that decided.
type compiler struct {
	here    *Profile // as this host has its paths
	profile *seatbelt.Profile
	find    *finder
	rules   []Rule // of the profile in order, and one more for the default of one that has none
	byRule  map[*seatbelt.Rule]int

	named   map[string]bool // the operations that a rule names itself
	any     string          // a name that a rule means only if it means every name
	shapes  bool            // filters that tell one thing in a directory from another
	kinds   bool            // filters that tell one kind of thing from another
	nodes   []*node         // in the tree's order
	at      map[string]*node
	missing []place
	crooked []place         // that rules name, and links lead to
	links   map[string]bool // that are made again
	veiled  []veiled        // what rules name, and the tool could put something else in the way to
	dirs    []string        // that rules name
	regexes []expansion

	policy  sandbox.Policy
	modes   []rootfs.Entry // what comes when everything is in its place
	seals   []rootfs.Entry // and after that
	calls   []seccomp.Rule
	loaders bool // some of what can be read cannot be executed, so the loader has to be
	guards  int
	tops    []*node         // see roots
	walked  []string        // directories in which every name was held against the expressions without a place
	kept    map[string]bool // paths whose names cannot be made, or that are a difference

	questions int // asked of the profile
	names     int // of the host, that might be fifos
	tests     int // of names against expressions without a place
	looks     int // at names of the host while regular expressions are expanded
}

// A verdict is the answer to one question, and by which rule.
type verdict struct {
	allow bool
	rule  int
	also  []int // rules that gave the same answer to other probes
}

// ask asks the profile about a path.
func (c *compiler) ask(operation, path string, k kind) verdict {
	return c.query(seatbelt.Query{Operation: operation, Path: path, VnodeType: string(k)})
}

func (c *compiler) query(q seatbelt.Query) verdict {
	c.questions++
	v := c.here.decide(q)
	i, known := c.byRule[v.Rule]
	if !known {
		i = len(c.rules) - 1
	}
	return verdict{allow: v.Allow, rule: i}
}

// differ writes a difference down at the rule that decided.
func (c *compiler) differ(v verdict, side Toward, why string, operations ...string) {
	c.rules[v.rule].differ(side, why, operations...)
	for _, i := range v.also {
		c.rules[i].differ(side, why, operations...)
	}
}

func newCompiler(here *Profile, texts []Rule, h host) *compiler {
	p := here.parsed
	c := &compiler{here: here, profile: p, find: newFinder(h), byRule: map[*seatbelt.Rule]int{}, named: map[string]bool{}, at: map[string]*node{}, kept: map[string]bool{}, links: map[string]bool{}}
	c.rules = texts
	c.any = unheardOf(p)
	for i := range p.Rules {
		r := &p.Rules[i]
		c.byRule[r] = i
		for _, o := range r.Operations {
			c.named[o] = true
		}
		eachFilter(r.Filters, func(f seatbelt.Filter) {
			switch f.Kind {
			case "regex", "prefix", "vnode-type":
				c.shapes = true
				c.kinds = c.kinds || f.Kind == "vnode-type"
			}
		})
	}
	return c
}

// unheardOf returns a name of letters that stand nowhere in the profile.
func unheardOf(p *seatbelt.Profile) string {
	used := map[rune]bool{}
	for _, r := range p.Rules {
		eachFilter(r.Filters, func(f seatbelt.Filter) {
			for _, a := range f.Args {
				for _, ch := range a {
					if ch >= private {
						used[ch] = true
					}
				}
			}
		})
	}
	ch := rune(private)
	for used[ch] {
		ch++
	}
	return string(ch)
}

// private is where Unicode begins to leave letters to everybody's own use.
const private = '\uE000'

// eachFilter calls f for each filter, and for those within it.
func eachFilter(filters []seatbelt.Filter, f func(seatbelt.Filter)) {
	for _, one := range filters {
		f(one)
		eachFilter(one.Sub, f)
	}
}

// namesAny reports whether a rule names one of the operations itself.
func (c *compiler) namesAny(operations ...string) bool {
	return slices.ContainsFunc(operations, func(o string) bool { return c.named[o] })
}

// The operations on files that are told apart.
var (
	readOps    = []string{"file-read-data", "file-read-metadata", "file-read-xattr"}
	contentOps = []string{"file-write-data", "file-write-create", "file-write-unlink"}
	writeOps   = slices.Concat(contentOps, statusOps)
	statusOps  = []string{"file-write-mode", "file-write-owner", "file-write-times", "file-write-xattr", "file-write-flags"}
)

// stand returns the operation to ask in place of one: those of a group that no
// rule names itself have the same answer.
func (c *compiler) stand(operation string) string {
	if c.named[operation] {
		return operation
	}
	for _, group := range [...][]string{readOps, writeOps} {
		if !slices.Contains(group, operation) {
			continue
		}
		for _, o := range group {
			if !c.named[o] {
				return o
			}
		}
	}
	return operation
}
