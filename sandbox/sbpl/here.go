package sbpl

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// Here returns the profile as this host has its paths: where there is no /private,
// what a rule says of /private/tmp it says of /tmp; and what it says of a path
// that leads through symbolic links, such as /bin/sh, it says of the target too,
// except that no allowing rule is followed through a link that the profile
// lets be written: a tool could have made it (as in CVE-2025-59532). The rules are the
// same, in the same order. It is what [Profile.Policy] holds, and what Evaluate of
// it agrees with.
//
// The error is of a profile that has become too large.
func (p *Profile) Here() (*Profile, error) { return p.here(thisHost{}) }

func (p *Profile) here(h host) (*Profile, error) {
	base := p
	if h.lstat("/private") == nothing {
		var err error
		base, err = p.rewrite(func(_ seatbelt.Action, f seatbelt.Filter) seatbelt.Filter { return withoutPrivate(f) })
		if err != nil {
			return nil, err
		}
	}
	find := newFinder(h)
	return base.rewrite(func(a seatbelt.Action, f seatbelt.Filter) seatbelt.Filter {
		if f.Kind != "literal" && f.Kind != "subpath" {
			return f
		}
		for _, arg := range f.Args {
			if target := base.target(find, a, arg); target != "" && !slices.Contains(f.Args, target) {
				f.Args = append(slices.Clip(f.Args), target)
			}
		}
		return f
	})
}

// target is where a rule's path leads by links; "": nowhere else.
func (p *Profile) target(find *finder, a seatbelt.Action, arg string) string {
	if !absolute(arg) || own(arg) {
		return ""
	}
	at := find.find(arg)
	if len(at.links) == 0 || own(at.path) {
		return ""
	}
	for _, l := range at.links {
		if a == seatbelt.Allow && (p.Evaluate("file-write-create", l).Allow || p.Evaluate("file-write-unlink", l).Allow) {
			return ""
		}
	}
	if at.rest != "" {
		return join(at.path, at.rest)
	}
	return at.path
}

// macOS has these directories below /private, and links to them from the root.
var privates = []string{"/private/tmp", "/private/var", "/private/etc"}

func withoutPrivate(f seatbelt.Filter) seatbelt.Filter {
	switch f.Kind {
	case "literal", "subpath", "prefix":
		f.Args = slices.Clone(f.Args)
		for i, a := range f.Args {
			for _, p := range privates {
				if within(a, p) {
					f.Args[i] = strings.TrimPrefix(a, "/private")
				}
			}
		}
		f.Args = slices.Compact(f.Args)
	case "regex":
		f.Args = slices.Clone(f.Args)
		for i, a := range f.Args {
			if rest, ok := strings.CutPrefix(a, "^(/private)?/"); ok {
				f.Args[i] = "^/" + rest
				continue
			}
			for _, p := range privates {
				if rest, ok := strings.CutPrefix(a, "^"+p); ok {
					f.Args[i] = "^" + strings.TrimPrefix(p, "/private") + rest
				}
			}
		}
	}
	return f
}

// rewrite returns the profile with each filter replaced; p itself, if none is
// another than before.
func (p *Profile) rewrite(change func(seatbelt.Action, seatbelt.Filter) seatbelt.Filter) (*Profile, error) {
	changed := false
	var all func(a seatbelt.Action, filters []seatbelt.Filter) []seatbelt.Filter
	all = func(a seatbelt.Action, filters []seatbelt.Filter) []seatbelt.Filter {
		out := make([]seatbelt.Filter, len(filters))
		for i, f := range filters {
			g := change(a, f)
			changed = changed || !slices.Equal(f.Args, g.Args)
			g.Sub = all(a, f.Sub)
			out[i] = g
		}
		return out
	}
	q := seatbelt.Profile{Source: p.parsed.Source, Version: p.parsed.Version, Debug: p.parsed.Debug, Rules: slices.Clone(p.parsed.Rules)}
	for i := range q.Rules {
		q.Rules[i].Filters = all(q.Rules[i].Action, q.Rules[i].Filters)
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
	return &Profile{parsed: again}, nil
}

// large bounds the reading of what was read already, a few times over: paths are
// written out, and may be two.
var large = seatbelt.Limits{Bytes: 256 << 20, Steps: 64_000_000, Rules: 1_000_000, Regexps: 8_000_000, Regexp: 100_000, String: 8 << 20}

// mostText is how long the text of a rule may be in a report.
const mostText = 400

func textOf(r seatbelt.Rule) string {
	s := r.String()
	if len(s) > mostText {
		s = s[:mostText] + " ...)"
	}
	return s
}
