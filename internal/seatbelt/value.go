package seatbelt

import "strconv"

// A value is what a form of the profile's Scheme comes to: a string, a symbol,
// an int64, a char, a bool, null, *pair, *closure, *builtin, operation, *filter,
// *Modifier, or unspecified.
type value any

type (
	symbol      string
	char        byte
	operation   string
	null        struct{}
	unspecified struct{}
)

type pair struct{ car, cdr value }

// A closure is a function of the profile's.
type closure struct {
	name string
	args []string
	rest string // the name that takes the further arguments, if any
	body []node
	env  *env
	src  string
}

// A builtin is one of ours. It is told where it was called.
type builtin struct {
	name string
	min  int
	max  int // -1: any number
	do   func(m *machine, at Position, args []value) (value, error)
}

// A filter is a Filter under construction, with its size as a tree and its depth:
// values are shared, so that a small program can name a huge tree.
type filter struct {
	Filter
	size, depth int
}

// An env is a frame of local variables.
type env struct {
	names []string
	vals  []value
	up    *env
}

// find is the place of a variable, and how much was looked at for it.
func (e *env) find(name string) (*value, int) {
	looked := 0
	for ; e != nil; e = e.up {
		looked += 1 + len(e.names)
		for i := len(e.names) - 1; i >= 0; i-- {
			if e.names[i] == name {
				return &e.vals[i], looked
			}
		}
	}
	return nil, looked
}

// truth: only #f is false.
func truth(v value) bool {
	b, is := v.(bool)
	return !is || b
}

// slice is a list's elements; false if it is no proper list.
func slice(v value) ([]value, bool) {
	var out []value
	for {
		switch x := v.(type) {
		case null:
			return out, true
		case *pair:
			out = append(out, x.car)
			v = x.cdr
		default:
			return nil, false
		}
	}
}

// kindOf names a value's type in messages.
func kindOf(v value) string {
	switch v.(type) {
	case string:
		return "a string"
	case symbol:
		return "a symbol"
	case int64:
		return "a number"
	case char:
		return "a character"
	case bool:
		return "a boolean"
	case null, *pair:
		return "a list"
	case *closure, *builtin:
		return "a procedure"
	case operation:
		return "an operation"
	case *filter:
		return "a filter"
	case *Modifier:
		return "a modifier"
	}
	return "nothing"
}

// A scope is where a special form stands.
type scope struct {
	env *env
	src string
	at  Position
}

func (s *scope) pos(m *machine, n *node) Position { return m.posIn(s.src, n) }

// want checks how many forms there are; -1 is no upper bound.
func (s *scope) want(name string, args []node, least, most int) error {
	if len(args) < least || most >= 0 && len(args) > most {
		return fail(s.at, "syntax error in %s", name)
	}
	return nil
}

// text is a filter's argument as a string.
func text(v value) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case symbol:
		return string(x), true
	case int64:
		return strconv.FormatInt(x, 10), true
	case bool:
		return map[bool]string{true: "#t", false: "#f"}[x], true
	}
	return "", false
}
