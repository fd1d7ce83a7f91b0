package seatbelt

import (
	"fmt"
	"slices"
)

// lint warns where the order of precedence and "the last match wins" differ, and of filters
// that mean more than they seem to.
func (m *machine) lint() {
	l := &linter{m: m, of: map[string]*seen{}, below: map[string][]string{}}
	l.budget = 10_000 + 16*len(m.profile.Rules)
	for i := range m.profile.Rules {
		l.rule(&m.profile.Rules[i])
	}
}

// A linter goes through the rules in order, and compares each with a few before it.
type linter struct {
	m      *machine
	of     map[string]*seen
	below  map[string][]string // the operations with rules, below each wildcard
	budget int                 // of comparisons; a profile is linted in linear time
}

// seen are the rules of one operation so far, the latest of them.
type seen struct {
	filtered   map[Action][]*Rule
	unfiltered map[Action]*Rule
}

// latest is how many earlier rules of an operation a rule is compared with.
const latest = 8

func (l *linter) rule(r *Rule) {
	l.local(r)
	for _, op := range r.Operations {
		if old := l.overridden(r, op); old != nil && l.budget > 0 {
			l.m.warn(r.At, Precedence, "(%s %s ..) does not override %s, %s", r.Action, op, old.rule.At, old.why)
		}
	}
	for _, op := range r.Operations {
		l.note(r, op)
	}
}

// stays is an earlier rule that a later one seems to override, but does not.
type stays struct {
	rule *Rule
	why  string
}

func (l *linter) overridden(r *Rule, op string) *stays {
	opposite := Allow
	if r.Action == Allow {
		opposite = Deny
	}
	if s := l.of[op]; s != nil && len(r.Filters) == 0 {
		if old := s.filtered[opposite]; len(old) > 0 {
			return &stays{old[len(old)-1], "which has a filter: that beats a rule without one"}
		}
	}
	for _, child := range l.below[op] {
		if l.budget--; l.budget < 0 {
			return nil
		}
		if slices.Contains(r.Operations, child) {
			continue // it names that too
		}
		s := l.of[child]
		if old := s.unfiltered[opposite]; old != nil {
			return &stays{old, fmt.Sprintf("which names %s: that beats the wildcard above it", child)}
		}
		old := s.filtered[opposite]
		for i := len(old) - 1; i >= 0 && i >= len(old)-latest; i-- {
			if l.budget--; l.budget < 0 {
				return nil
			}
			if l.overlap(r.Filters, old[i].Filters) {
				return &stays{old[i], fmt.Sprintf("which names %s: that beats the wildcard above it", child)}
			}
		}
	}
	return nil
}

func (l *linter) note(r *Rule, op string) {
	s := l.of[op]
	if s == nil {
		s = &seen{map[Action][]*Rule{}, map[Action]*Rule{}}
		l.of[op] = s
		for _, up := range chain(op)[1:] {
			l.below[up] = append(l.below[up], op)
		}
	}
	if len(r.Filters) == 0 {
		s.unfiltered[r.Action] = r
		return
	}
	list := append(s.filtered[r.Action], r)
	if len(list) > 4*latest {
		list = append([]*Rule{}, list[len(list)-latest:]...)
	}
	s.filtered[r.Action] = list
}

// overlap: something may match both, as far as is easily seen.
func (l *linter) overlap(a, b []Filter) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	for i := range a {
		for j := range b {
			if l.budget--; l.budget < 0 {
				return false
			}
			if mayMeet(&a[i], &b[j]) {
				return true
			}
		}
	}
	return false
}

// mayMeet: two filters could match the same. Only plain paths are told apart.
func mayMeet(a, b *Filter) bool {
	ka, kb := kindNamed(a.Kind).how, kindNamed(b.Kind).how
	if ka != pathIs && ka != pathBelow || kb != pathIs && kb != pathBelow || len(a.Args)*len(b.Args) > 64 {
		return true
	}
	for _, x := range a.Args {
		for _, y := range b.Args {
			if x == y || kb == pathBelow && below(x, y) || ka == pathBelow && below(y, x) {
				return true
			}
		}
	}
	return false
}

// local warns of an outgoing rule that looks at the local end.
func (l *linter) local(r *Rule) {
	if r.Action != Allow {
		return
	}
	for _, op := range r.Operations {
		if op != "network-outbound" && op != "network*" {
			continue
		}
		for i := range r.Filters {
			f := &r.Filters[i]
			if f.Kind == "local" && f.Args[0] != "unix-socket" {
				l.m.warn(r.At, Wide, "%s with %s allows connections to anywhere: the local end says nothing about the remote one", op, f)
			}
		}
	}
}
