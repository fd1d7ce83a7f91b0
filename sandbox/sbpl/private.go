package sbpl

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// macOS has these directories in /private, and links to them in the root. On a host
// without /private each path in them has the name that macOS knows it by as an
// alias: every filter, an expression or a prefix too, is held against both names.
var privates = []string{"/private/tmp", "/private/var", "/private/etc"}

// aliasOf is the name that a path of this host has on macOS; "": the same.
func (p *Profile) aliasOf(at string) string {
	if p.private {
		for _, d := range privates {
			if within("/private"+at, d) {
				return "/private" + at
			}
		}
	}
	return ""
}

// decide asks the profile about a path of this host.
func (p *Profile) decide(q seatbelt.Query) seatbelt.Verdict {
	q.Alias = p.aliasOf(q.Path)
	return p.parsed.Decide(q)
}

// named are the paths of this host that the argument of a literal or subpath filter
// names.
func (p *Profile) named(kind, arg string) []string {
	if !p.private {
		return []string{arg}
	}
	for _, d := range privates {
		if within(arg, d) {
			return []string{strings.TrimPrefix(arg, "/private")}
		}
	}
	if kind == "subpath" && arg == "/private" {
		return []string{"/tmp", "/var", "/etc"}
	}
	return []string{arg}
}

// expansion reads a regular expression. One that leaves open whether /private comes
// first, as many profiles do, means the same as one without it.
func (p *Profile) expansion(rule int, text string) expansion {
	e := newExpansion(rule, text)
	if rest, open := strings.CutPrefix(text, "^(/private)?/"); p.private && open {
		filter := e.filter
		e = newExpansion(rule, "^/"+rest)
		e.filter = filter
	}
	return e
}

// places are the expansions of an expression or prefix on this host: more than one
// if what it begins with does not say which directory in /private it means.
func (p *Profile) places(e expansion) []expansion {
	if !p.private || len(e.start) < 2 {
		return []expansion{e}
	}
	var list []expansion
	for _, d := range privates {
		at := e
		switch {
		case strings.HasPrefix(e.start, d+"/"):
			at.start, at.root = strings.TrimPrefix(e.start, "/private"), strings.TrimPrefix(e.root, "/private")
		case strings.HasPrefix(d, e.start):
			at.start = strings.TrimPrefix(d, "/private")
			if at.root = "/"; e.whole {
				at.root = at.start
			}
		default:
			continue
		}
		list = append(list, at)
	}
	if len(list) == 0 {
		return []expansion{e}
	}
	return list
}
