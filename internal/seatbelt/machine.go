package seatbelt

import (
	"fmt"
	"regexp"
)

// A machine runs a profile's program. It counts what it does: a step is about
// what a form, a pair or eight bytes of a string cost.
type machine struct {
	options Options
	limits  Limits
	profile *Profile
	globals map[string]value
	within  []*filter // of (with-filter ..), outermost first
	top     Position  // the top-level form that runs
	src     string    // whose text that is
	bytes   int
	steps   int
	depth   int
	imports int
	nested  int // imports within imports
	regexps map[string]compiled
	program int // instructions of all regular expressions
	warned  map[string]bool
}

// spend counts steps.
func (m *machine) spend(n int, at Position) error {
	if n < 0 || m.steps > m.limits.Steps-n {
		return fail(at, "the profile takes too long: more than %d steps", m.limits.Steps)
	}
	m.steps += n
	return nil
}

// fits checks a string's size, and counts it.
func (m *machine) fits(s string, at Position) error {
	if len(s) > m.limits.String {
		return fail(at, "a string of more than %d bytes", m.limits.String)
	}
	return m.spend(len(s)/8, at)
}

// deepest is how deep evaluation may go: a call takes several levels.
func (m *machine) deepest() int { return 16 * m.limits.Depth }

func (m *machine) posIn(src string, n *node) Position {
	return Position{Source: src, Line: int(n.line), Column: int(n.col)}
}

// list makes a list.
func (m *machine) list(vals []value, at Position) (value, error) {
	if err := m.spend(4*len(vals), at); err != nil {
		return nil, err
	}
	var l value = null{}
	for i := len(vals) - 1; i >= 0; i-- {
		l = &pair{vals[i], l}
	}
	return l, nil
}

func (m *machine) warn(at Position, kind WarningKind, format string, args ...any) {
	switch w := &m.profile.Warnings; {
	case len(*w) < m.limits.Warning:
		*w = append(*w, Warning{at, kind, fmt.Sprintf(format, args...)})
	case len(*w) == m.limits.Warning:
		*w = append(*w, Warning{at, More, fmt.Sprintf("more than %d warnings; the others are not kept", m.limits.Warning)})
	}
}

// warnOnce warns of a name the first time only.
func (m *machine) warnOnce(at Position, kind WarningKind, name, format string, args ...any) {
	if !m.warned[name] && len(m.profile.Warnings) <= m.limits.Warning {
		m.warned[name] = true
		m.warn(at, kind, format, args...)
	}
}

// specialForms do not have their arguments evaluated before them. It is filled by init,
// since the forms evaluate forms.
var specialForms map[string]func(m *machine, s *scope, args []node) (value, error)

// builtins are the functions of the profile's Scheme.
var builtins map[string]*builtin

// A compiled is a regular expression, for those who use the same text again.
type compiled struct {
	re   *regexp.Regexp
	size int
}
