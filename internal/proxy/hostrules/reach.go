package hostrules

import (
	"net"
	"strings"
)

// Reach says whether any target that an entry names can be allowed: a secret or a
// request rule for others can never be of use. Deny has the entry of the
// deny-list that is before all of it; Unknown is what no entry of the allow-list
// speaks of, and ask says that Decide would be asked about that. What takes several
// entries to deny is not found out.
func (r Rules) Reach(entry string, ask bool) Decision {
	e, err := compileEntry(entry)
	if err != nil {
		return Decision{Why: err.Error()}
	}
	best := Decision{Outcome: Unknown}
	allow := r.allow
	if ask {
		allow = append([]hostRule{e}, allow...)
	}
	for _, a := range allow {
		common, some := e.and(a)
		if !some {
			continue
		}
		denied := r.denies(common)
		if denied == "" {
			return Decision{Outcome: Allow, Rule: a.text}
		}
		best = Decision{Rule: denied}
	}
	return best
}

// denies returns the entry that denies all that a rule names.
func (r Rules) denies(common hostRule) string {
	for _, d := range r.deny {
		if d.covers(common) {
			return d.text
		}
	}
	return ""
}

// and returns what a rule and one that allows have in common.
func (r hostRule) and(a hostRule) (common hostRule, some bool) {
	lo, hi := max(r.lo, a.lo), min(r.hi, a.hi)
	if lo > hi {
		return hostRule{}, false
	}
	switch {
	case a.has(r):
		common = r
	case r.has(a):
		common = a
	default:
		return hostRule{}, false
	}
	common.lo, common.hi = lo, hi
	if common.kind != prefix {
		return common, true
	}
	// Of what lies within a special range as a whole, a wider entry names nothing.
	what, within := special(common.prefix.Addr())
	whole := what != "" && within.Bits() <= common.prefix.Bits()
	return common, !whole || a.admits(common.prefix.Addr())
}

// has reports whether a rule names every host that another one does.
func (r hostRule) has(o hostRule) bool {
	switch {
	case r.kind == anything:
		return true
	case r.kind == prefix:
		return o.kind == prefix && r.prefix.Bits() <= o.prefix.Bits() && r.prefix.Contains(o.prefix.Addr())
	case r.kind == below:
		return (o.kind == name || o.kind == below) && strings.HasSuffix(o.name, r.name) // which begins with a dot
	default:
		return o.kind == name && o.name == r.name
	}
}

// covers reports whether a rule names every target that another one does.
func (r hostRule) covers(o hostRule) bool { return r.has(o) && r.lo <= max(o.lo, 1) && o.hi <= r.hi }

// Names says which names, with what is below them, and which addresses entries match. every
// is true if one is "*". Entries that [Compile] refuses are left out.
func Names(entries []string) (names []string, nets []*net.IPNet, every bool) {
	for _, e := range entries {
		r, err := compileEntry(e)
		switch {
		case err != nil:
		case r.kind == prefix:
			nets = append(nets, &net.IPNet{IP: r.prefix.Addr().AsSlice(), Mask: net.CIDRMask(r.prefix.Bits(), r.prefix.Addr().BitLen())})
		case r.kind == anything:
			every = true
		default: // and what is below it
			names = append(names, strings.TrimPrefix(r.name, "."))
		}
	}
	return names, nets, every
}
