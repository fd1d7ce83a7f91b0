package sbpl

import (
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// Here returns the profile as this host has its paths: where there is no /private,
// what a rule says of /private/tmp it says of /tmp (see private.go); and what it
// says of a path that leads through symbolic links, such as /bin/sh, it says of the
// target too, except that nothing is allowed through a link that the profile lets
// be written: a tool could have made it (as in CVE-2025-59532). A filter within a
// require-not of a denying rule allows. The rules are the same, in the same order.
// It is what [Profile.Policy] holds, and what Evaluate of it agrees with.
//
// The error is of a profile that has become too large.
func (p *Profile) Here() (*Profile, error) { return p.here(thisHost{}) }

func (p *Profile) here(h host) (*Profile, error) {
	base := &Profile{parsed: p.parsed, private: h.lstat("/private") == nothing}
	find := newFinder(h)
	return base.rewrite(func(allows bool, f seatbelt.Filter) seatbelt.Filter {
		if f.Kind != "literal" && f.Kind != "subpath" {
			return f
		}
		for _, arg := range f.Args {
			for _, at := range base.named(f.Kind, arg) {
				if target := base.target(find, allows, at); target != "" && !slices.Contains(f.Args, target) {
					f.Args = append(slices.Clip(f.Args), target)
				}
			}
		}
		return f
	})
}

// target is where a rule's path leads by links; "": nowhere else.
func (p *Profile) target(find *finder, allows bool, arg string) string {
	if !absolute(arg) || own(arg) {
		return ""
	}
	at := find.find(arg)
	if len(at.links) == 0 || own(at.path) {
		return ""
	}
	for _, l := range at.links {
		if allows && p.writes(l) {
			return ""
		}
	}
	if at.rest != "" {
		return join(at.path, at.rest)
	}
	return at.path
}

// writes reports whether the profile lets what is at a path be another: the path
// itself, or a directory on the way.
func (p *Profile) writes(at string) bool {
	for ; at != "/"; at = path.Dir(at) {
		if p.Evaluate("file-write-create", at).Allow || p.Evaluate("file-write-unlink", at).Allow {
			return true
		}
	}
	return false
}

// rewrite returns the profile with each filter replaced; p itself, if none is
// another than before. change is told whether more is allowed if the filter
// matches more: require-not turns that round.
func (p *Profile) rewrite(change func(allows bool, f seatbelt.Filter) seatbelt.Filter) (*Profile, error) {
	changed := false
	var all func(allows bool, filters []seatbelt.Filter) []seatbelt.Filter
	all = func(allows bool, filters []seatbelt.Filter) []seatbelt.Filter {
		out := make([]seatbelt.Filter, len(filters))
		for i, f := range filters {
			g := change(allows, f)
			changed = changed || !slices.Equal(f.Args, g.Args)
			g.Sub = all(allows != (f.Kind == "require-not"), f.Sub)
			out[i] = g
		}
		return out
	}
	q := seatbelt.Profile{Source: p.parsed.Source, Version: p.parsed.Version, Debug: p.parsed.Debug, Rules: slices.Clone(p.parsed.Rules)}
	for i := range q.Rules {
		q.Rules[i].Filters = all(q.Rules[i].Action == seatbelt.Allow, q.Rules[i].Filters)
	}
	if !changed {
		return p, nil
	}
	again, err := seatbelt.Parse(seatbelt.Source{Name: q.Source, Text: q.String()}, seatbelt.Options{Fragment: true, NewerOperations: true, Limits: large})
	if err == nil && len(again.Rules) != len(q.Rules) {
		err = &Error{Name: q.Source, Line: 1, Message: "does not read as it was written"}
	}
	if err != nil {
		return nil, readable(err)
	}
	for i := range again.Rules {
		again.Rules[i].At, again.Rules[i].Call = p.parsed.Rules[i].At, p.parsed.Rules[i].Call
	}
	again.Warnings = p.parsed.Warnings
	return &Profile{parsed: again, private: p.private}, nil
}

// large bounds the reading of what was read already, a few times over: paths are
// written out, and may be two.
var large = seatbelt.Limits{Bytes: 256 << 20, Steps: 64_000_000, Rules: 1_000_000, Regexps: 8_000_000, Regexp: 100_000, String: 8 << 20}
