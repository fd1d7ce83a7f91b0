package sbpl

import (
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// collect finds the nodes: everything that the profile could tell from what lies
// around it.
func (c *compiler) collect() {
	c.add("/", directory)
	if c.find.lstat("/sys") == directory {
		c.add("/sys", directory) // of which less can be written
	}
	for i, r := range c.profile.Rules {
		if len(r.Filters) == 0 || !concernsPaths(r) {
			continue
		}
		for _, f := range r.Filters {
			c.name(i, f, true, false)
		}
	}
	c.expand()
	slices.SortFunc(c.nodes, func(a, b *node) int { return pathrule.TreeOrder(a.path, b.path) })
}

// concernsPaths reports whether a rule can decide about a path.
func concernsPaths(r seatbelt.Rule) bool {
	return slices.ContainsFunc(r.Operations, func(o string) bool {
		return o == "default" || strings.HasPrefix(o, "file") || strings.HasPrefix(o, "process") || strings.HasPrefix(o, "network")
	})
}

// name takes what one filter names. alone says that it is enough for the rule to
// match, negated that the rule matches where it does not.
func (c *compiler) name(rule int, f seatbelt.Filter, alone, negated bool) {
	for _, s := range f.Sub {
		c.name(rule, s, alone && f.Kind == "require-any", negated != (f.Kind == "require-not"))
	}
	switch f.Kind {
	case "literal", "subpath":
		for _, arg := range f.Args {
			for _, p := range c.here.named(f.Kind, arg) {
				c.path(p)
			}
		}
	case "prefix":
		for _, p := range f.Args {
			e := expansion{rule: rule, root: dirOf(p), start: p, filter: seatbelt.Filter{Kind: f.Kind, Args: []string{p}}, negated: negated}
			c.regexes = append(c.regexes, c.here.places(e)...)
		}
	case "regex":
		for _, text := range f.Args {
			e := c.here.expansion(rule, text)
			if e.negated = negated; !alone {
				e.pattern = ""
			}
			c.regexes = append(c.regexes, c.here.places(e)...)
		}
	}
}

// path adds what a rule names, as far as it exists.
func (c *compiler) path(p string) {
	if !absolute(p) || own(p) && !c.device(p) {
		return
	}
	at := c.find.find(p)
	c.veil(p, at)
	if at.rest != "" {
		if at.kind == directory && len(at.links) == 0 {
			c.missing = append(c.missing, at)
			c.add(at.path, at.kind)
		}
		return
	}
	if at.path == p {
		if c.add(p, at.kind); at.kind == directory && p != "/" {
			c.dirs = append(c.dirs, p)
		}
		return
	}
	c.crooked = append(c.crooked, at) // what it leads to, the rule says too: see Here
	for _, l := range at.links {
		if dir := path.Dir(l); !own(dir) {
			c.add(dir, directory)
		}
	}
}

func (c *compiler) veil(p string, at place) {
	v := veiled{path: p}
	switch {
	case len(at.links) > 0:
		v.dir, v.link = path.Dir(at.links[0]), at.links[0] == p
	case at.rest != "" && at.kind != directory:
		v.dir = path.Dir(at.path)
	default:
		return
	}
	if !own(v.dir) {
		c.add(v.dir, directory)
		c.veiled = append(c.veiled, v)
	}
}

// device reports whether p is a device of the host that no sandbox has already.
func (c *compiler) device(p string) bool {
	k := c.find.find(p).kind
	return within(p, "/dev") && (k == charDev || k == blockDev) && !slices.Contains(ownDevices, p)
}

var ownDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/console"}

// add makes a node of p and of each directory on the way.
func (c *compiler) add(p string, k kind) *node {
	if n := c.at[p]; n != nil {
		return n
	}
	n := &node{path: p, kind: k}
	c.at[p] = n
	c.nodes = append(c.nodes, n)
	if p != "/" {
		n.up = c.add(path.Dir(p), directory)
	}
	return n
}
