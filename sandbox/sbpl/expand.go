package sbpl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// mostLooks is how many names of the host all expansions together look at.
const mostLooks = 20_000

// unwalked are trees that no expansion walks from above: what is in them is
// large, of the system, or not the host's.
var unwalked = []string{"/proc", "/sys", "/dev", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/nix", "/gnu", "/snap"}

// expand adds a node for whatever exists now and a regular expression or prefix
// matches.
func (c *compiler) expand() {
	var anywhere []func(string) bool
	defer func() { c.walkAnywhere(anywhere) }()
	for i := range c.regexes {
		e := &c.regexes[i]
		if e.whole {
			c.path(e.root)
			continue
		}
		at := c.find.find(e.root)
		if at.rest != "" || at.path != e.root {
			continue
		}
		c.add(at.path, at.kind)
		switch matches := c.matcherOf(e.filter); {
		case matches == nil:
		case e.start == "":
			anywhere = append(anywhere, matches)
		default:
			c.walk(e, at.path, matches)
		}
	}
}

// mostTests bounds how often a name is held against an expression without a place.
const mostTests = 1_000_000

// walkAnywhere adds what expressions without a place match: in the directories that
// rules name first, for there is what the profile is about.
func (c *compiler) walkAnywhere(matchers []func(string) bool) {
	if len(matchers) == 0 {
		return
	}
	seen := map[string]bool{}
	complete := true
	var walk func(dir string)
	walk = func(dir string) {
		if seen[dir] || slices.Contains(unwalked, dir) {
			return
		}
		seen[dir] = true
		names, all := c.find.host.list(dir)
		complete = complete && all
		for _, name := range names {
			if c.looks, c.tests = c.looks+1, c.tests+len(matchers); c.looks > mostLooks || c.tests > mostTests {
				complete = false
				return
			}
			p := join(dir, name)
			k := c.find.lstat(p)
			if k == nothing || k == symlink || own(p) {
				continue
			}
			if slices.ContainsFunc(matchers, func(m func(string) bool) bool { return m(p) }) {
				c.add(p, k)
			}
			if k == directory {
				walk(p)
			}
		}
	}
	for _, dir := range c.dirs {
		if !slices.ContainsFunc(unwalked, func(u string) bool { return within(dir, u) }) {
			if walk(dir); complete {
				c.walked = append(c.walked, dir)
			}
		}
	}
	walk("/")
}

// matcherOf asks package seatbelt itself what one filter matches.
func (c *compiler) matcherOf(f filterOf) func(p string) bool {
	text := "(version 1)(deny default)(allow file-read-data (" + f.Kind + " " + strconv.Quote(f.Args[0]) + "))"
	if strings.ContainsFunc(f.Args[0], func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil
	}
	p, err := seatbelt.Parse(seatbelt.Source{Name: "filter", Text: text}, seatbelt.Options{})
	if err != nil {
		return nil
	}
	return func(path string) bool {
		return p.Decide(seatbelt.Query{Operation: "file-read-data", Path: path, Alias: c.here.aliasOf(path)}).Allow
	}
}

// walk adds what matches below dir.
func (c *compiler) walk(e *expansion, dir string, matches func(string) bool) {
	names, _ := c.find.host.list(dir)
	for _, name := range names {
		if c.looks++; c.looks > mostLooks {
			return
		}
		p := join(dir, name)
		k := c.find.lstat(p)
		if k == nothing || k == symlink || slices.Contains(unwalked, p) {
			continue
		}
		if !strings.HasPrefix(p, e.start) && !within(e.start, p) {
			continue // nothing that matches lies there
		}
		if matches(p) && (!own(p) || c.device(p)) {
			c.add(p, k)
		}
		if one := join(p, c.any); k == directory && !(matches(p) && matches(one) && matches(join(one, c.any))) {
			c.walk(e, p, matches)
		}
	}
}

// expanded writes down what an expansion cannot say: what does not exist yet.
func (c *compiler) expanded() {
	open := map[string]unclarity{}
	for _, e := range c.regexes {
		if e.whole {
			continue
		}
		r := c.profile.Rules[e.rule]
		side, why := Narrower, "it is looked up among what exists at the start; what is made later is not allowed"
		if (r.Action == seatbelt.Deny) != e.negated {
			side, why = Wider, "it is looked up among what exists at the start; what is made later is not denied"
		}
		if e.guarded {
			continue
		}
		var about []string
		for _, o := range r.Operations {
			if o == "process*" {
				o = "process-exec*"
			}
			if strings.HasPrefix(o, "file") || strings.HasPrefix(o, "process-exec") || strings.HasPrefix(o, "network") || o == "default" {
				about = append(about, o)
			}
		}
		if len(about) == 0 {
			continue
		}
		c.rules[e.rule].differ(side, why, about...)
		for _, o := range about {
			if u, known := open[o]; e.negated || e.start == "" {
				if !known {
					u.at = c.rules[e.rule].At
				}
				u.wide = u.wide || e.negated == (r.Action == seatbelt.Allow)
				open[o] = u
			}
		}
	}
	c.unclear(open)
}

// An unclarity is what an expression leaves open about an operation: which names
// that do not exist at the start it would tell apart.
type unclarity struct {
	at   string // the rule of the first such expression
	wide bool   // what other rules deny may be possible
}

// unclear writes a difference down at every rule that can decide about such names.
func (c *compiler) unclear(open map[string]unclarity) {
	for _, o := range sorted(open) {
		u := open[o]
		why := "an expression at " + u.at + " tells names apart that do not exist at the start"
		for i := range c.rules {
			source := seatbelt.Rule{Operations: []string{"default"}}
			if i < len(c.profile.Rules) {
				source = c.profile.Rules[i]
			}
			if !slices.ContainsFunc(source.Operations, func(s string) bool { return covers(s, o) || covers(o, s) }) {
				continue
			}
			c.rules[i].differ(Narrower, why, o)
			if u.wide && source.Action != seatbelt.Allow {
				c.rules[i].differ(Wider, why, o)
			}
		}
	}
}
