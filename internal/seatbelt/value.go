package seatbelt

import (
	"strconv"
	"strings"
)

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

// quote writes a string so that the reader reads it back.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < 0x20 || c == 0x7f:
			b.WriteString(`\x`)
			if c < 16 {
				b.WriteByte('0')
			}
			b.WriteString(strconv.FormatUint(uint64(c), 16))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
