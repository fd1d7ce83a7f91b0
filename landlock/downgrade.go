package landlock

import "fmt"

// Lost is one thing of a ruleset that a kernel cannot hold.
type Lost struct {
	Feature
	// Ability is true if the process may do less than the ruleset grants, and false if it may do more than the
	// ruleset grants. Only a lost protection (false) is a hole; FSRefer before ABI 2 is the one lost ability.
	Ability bool
}

// String prints what is lost, what it needs, and what holds without it.
func (l Lost) String() string {
	kind := "protection"
	if l.Ability {
		kind = "ability"
	}
	return fmt.Sprintf("lost %s %s: %s", kind, l.Feature, l.Without)
}

// Downgrade returns the strictest ruleset that a kernel of the given Landlock ABI accepts in
// r's place, and everything that is lost by it, by ABI. Nothing lost means that the kernel
// holds r as it stands. It is pure: abi is a plain number, as [ABI] returns it or as a test
// makes it up.
//
// A right that the kernel does not know is no longer handled and leaves the rules; a rule that is left with nothing leaves
// the ruleset. FSRefer differs: before ABI 2 the kernel denies it always, so what is lost is the ability, and only if a rule
// grants it. The rest of the ruleset stays in force. A rule's rights that the ruleset does not handle are taken out too.
//
// The error is a [*FieldError] if r is not valid, and an [*UnsupportedError] with all that is lost if the kernel
// would hold nothing of it, as with ABI 0. With an error the ruleset returned is the zero value, which grants nothing.
func Downgrade(r Ruleset, abi int) (Ruleset, []Lost, error) {
	if err := r.Validate(); err != nil {
		return Ruleset{}, nil, err
	}
	lost := lostAt(r, abi)
	fs, net, scope, _ := Supported(abi)
	d := Ruleset{
		UnhandledFS:  FSAll &^ (r.HandledFS() & fs),
		UnhandledNet: NetAll &^ (r.HandledNet() & net),
		Unscoped:     ScopeAll &^ (r.Scoped() & scope),
	}
	if d.HandlesNothing() {
		return Ruleset{}, lost, &UnsupportedError{
			ABI: abi, Reason: fmt.Sprintf("a kernel with Landlock ABI %d holds nothing of the ruleset", max(abi, 0)),
			Remedy: "use Linux " + lost[0].Kernel + " or newer with landlock among its security modules", Lost: lost,
		}
	}
	for _, rule := range r.Paths {
		if rule.Access &= d.HandledFS(); rule.Access != 0 {
			d.Paths = append(d.Paths, rule)
		}
	}
	for _, rule := range r.Ports {
		if rule.Access &= d.HandledNet(); rule.Access != 0 {
			d.Ports = append(d.Ports, rule)
		}
	}
	return d, lost, nil
}

// lostAt lists what of r a kernel of this ABI cannot hold, in the table's order.
func lostAt(r Ruleset, abi int) []Lost {
	var lost []Lost
	for _, f := range Table() {
		switch {
		case f.ABI <= abi:
		case f.FS == FSRefer && abi >= 1:
			if r.HandledFS() != 0 && r.grants(FSRefer) {
				lost = append(lost, Lost{f, true})
			}
		case f.FS&r.HandledFS() != 0, f.Net&r.HandledNet() != 0, f.Scope&r.Scoped() != 0:
			lost = append(lost, Lost{f, false})
		}
	}
	return lost
}

func (r Ruleset) grants(right AccessFS) bool {
	for _, rule := range r.Paths {
		if rule.Access&right != 0 {
			return true
		}
	}
	return false
}
