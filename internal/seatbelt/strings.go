package seatbelt

import "strings"

func doAppendStrings(m *machine, at Position, args []value) (value, error) {
	total := 0
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			return nil, wrong(at, "string-append", i, "string")
		}
		if total += len(s); total > m.limits.String {
			return nil, fail(at, "a string of more than %d bytes", m.limits.String)
		}
	}
	if err := m.spend(total/8, at); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(total)
	for _, a := range args {
		b.WriteString(a.(string))
	}
	return b.String(), nil
}

func doSubstring(m *machine, at Position, args []value) (value, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "substring", 0, "string")
	}
	from, ok := args[1].(int64)
	if !ok || from < 0 || from > int64(len(s)) {
		return nil, fail(at, "substring: start out of bounds")
	}
	to := int64(len(s))
	if len(args) == 3 {
		if to, ok = args[2].(int64); !ok || to < from || to > int64(len(s)) {
			return nil, fail(at, "substring: end out of bounds")
		}
	}
	return s[from:to], nil
}

func doSameStrings(m *machine, at Position, args []value) (value, error) {
	for i, a := range args {
		if _, ok := a.(string); !ok {
			return nil, wrong(at, "string=?", i, "string")
		}
	}
	for _, a := range args[1:] {
		if a != args[0] {
			return false, nil
		}
	}
	return true, m.spend(len(args[0].(string))/8, at)
}

func doSymbolToString(m *machine, at Position, args []value) (value, error) {
	s, ok := args[0].(symbol)
	if !ok {
		return nil, wrong(at, "symbol->string", 0, "symbol")
	}
	return string(s), nil
}

func doStringRef(m *machine, at Position, args []value) (value, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "string-ref", 0, "string")
	}
	i, ok := args[1].(int64)
	if !ok || i < 0 || i >= int64(len(s)) {
		return nil, fail(at, "string-ref: out of bounds")
	}
	return char(s[i]), nil
}

func doStringToList(m *machine, at Position, args []value) (value, error) {
	s, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "string->list", 0, "string")
	}
	if err := m.spend(4*len(s), at); err != nil {
		return nil, err
	}
	var l value = null{}
	for i := len(s) - 1; i >= 0; i-- {
		l = &pair{char(s[i]), l}
	}
	return l, nil
}

func doListToString(m *machine, at Position, l []value) (value, error) {
	var b strings.Builder
	for i, v := range l {
		c, ok := v.(char)
		if !ok {
			return nil, wrong(at, "list->string", i, "character")
		}
		b.WriteByte(byte(c))
	}
	return b.String(), m.fits(b.String(), at)
}

func doSameChars(m *machine, at Position, args []value) (value, error) {
	for i, a := range args {
		if _, ok := a.(char); !ok {
			return nil, wrong(at, "char=?", i, "character")
		}
	}
	for _, a := range args[1:] {
		if a != args[0] {
			return false, nil
		}
	}
	return true, nil
}
