package seatbelt

import "math"

func onList(name string, do func(*machine, Position, []value) (value, error)) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		l, ok := slice(args[0])
		if !ok {
			return nil, wrong(at, name, 0, "list")
		}
		if err := m.spend(len(l), at); err != nil {
			return nil, err
		}
		return do(m, at, l)
	}
}

func doIsList(m *machine, at Position, args []value) (value, error) {
	l, ok := slice(args[0])
	return ok, m.spend(len(l), at)
}

// same is eqv?: scalars by value, the rest by identity.
func (m *machine) same(a, b value, at Position) (bool, error) {
	switch a := a.(type) {
	case string:
		s, ok := b.(string)
		if !ok || len(s) != len(a) {
			return false, nil
		}
		return s == a, m.spend(len(a)/8, at)
	case symbol:
		s, ok := b.(symbol)
		if !ok || len(s) != len(a) {
			return false, nil
		}
		return s == a, m.spend(len(a)/8, at)
	case int64, char, bool, null, operation, unspecified, *pair, *closure, *builtin, *filter, *Modifier:
		return a == b, nil
	}
	return false, nil
}

func doSame(m *machine, at Position, args []value) (value, error) {
	return m.same(args[0], args[1], at)
}

func doEqual(m *machine, at Position, args []value) (value, error) {
	return m.equal(args[0], args[1], 0, at)
}

func (m *machine) equal(a, b value, depth int, at Position) (bool, error) {
	for {
		if err := m.spend(1, at); err != nil {
			return false, err
		}
		x, ok := a.(*pair)
		y, ok2 := b.(*pair)
		if !ok || !ok2 {
			return m.same(a, b, at)
		}
		if depth > m.limits.Depth {
			return false, fail(at, "equal?: nested too deep")
		}
		if eq, err := m.equal(x.car, y.car, depth+1, at); err != nil || !eq {
			return false, err
		}
		a, b = x.cdr, y.cdr
	}
}

func doCons(m *machine, at Position, args []value) (value, error) {
	return &pair{args[0], args[1]}, m.spend(4, at)
}

// part is car, cdr and their compositions: path is applied from its beginning.
func part(name, path string) func(*machine, Position, []value) (value, error) {
	return func(m *machine, at Position, args []value) (value, error) {
		v := args[0]
		for _, c := range path {
			p, ok := v.(*pair)
			if !ok {
				return nil, wrong(at, name, 0, "pair")
			}
			if v = p.cdr; c == 'a' {
				v = p.car
			}
		}
		return v, nil
	}
}

func doReverse(m *machine, at Position, l []value) (value, error) {
	for i, j := 0, len(l)-1; i < j; i, j = i+1, j-1 {
		l[i], l[j] = l[j], l[i]
	}
	return m.list(l, at)
}

func doAppend(m *machine, at Position, args []value) (value, error) {
	if len(args) == 0 {
		return null{}, nil
	}
	out := args[len(args)-1]
	for i := len(args) - 2; i >= 0; i-- {
		l, ok := slice(args[i])
		if !ok {
			return nil, wrong(at, "append", i, "list")
		}
		if err := m.spend(4*len(l), at); err != nil {
			return nil, err
		}
		for j := len(l) - 1; j >= 0; j-- {
			out = &pair{l[j], out}
		}
	}
	return out, nil
}

// each calls a function with the first elements of lists, the second ones, and so on.
func (m *machine) each(name string, at Position, args []value) ([]value, error) {
	lists := make([][]value, len(args)-1)
	shortest := math.MaxInt
	for i, a := range args[1:] {
		l, ok := slice(a)
		if !ok {
			return nil, wrong(at, name, i+1, "list")
		}
		if err := m.spend(len(l), at); err != nil {
			return nil, err
		}
		lists[i], shortest = l, min(shortest, len(l))
	}
	var out []value
	for i := range shortest {
		call := make([]value, len(lists))
		for j := range lists {
			call[j] = lists[j][i]
		}
		v, err := m.apply(args[0], call, at)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func doMap(m *machine, at Position, args []value) (value, error) {
	out, err := m.each("map", at, args)
	if err != nil {
		return nil, err
	}
	return m.list(out, at)
}

func doForEach(m *machine, at Position, args []value) (value, error) {
	_, err := m.each("for-each", at, args)
	return unspecified{}, err
}

func doApply(m *machine, at Position, args []value) (value, error) {
	last, ok := slice(args[len(args)-1])
	if !ok {
		return nil, wrong(at, "apply", len(args)-1, "list")
	}
	if err := m.spend(len(last), at); err != nil {
		return nil, err
	}
	call := append(append([]value{}, args[1:len(args)-1]...), last...)
	if m.depth++; m.depth > m.deepest() {
		return nil, fail(at, "calls nested too deep")
	}
	defer func() { m.depth-- }()
	return m.apply(args[0], call, at)
}

func doMember(m *machine, at Position, args []value) (value, error) {
	for l := args[1]; ; {
		p, ok := l.(*pair)
		if !ok {
			return false, nil
		}
		if eq, err := m.equal(args[0], p.car, 0, at); err != nil || eq {
			return l, err
		}
		l = p.cdr
	}
}

func doAssoc(m *machine, at Position, args []value) (value, error) {
	for l := args[1]; ; {
		p, ok := l.(*pair)
		if !ok {
			return false, nil
		}
		entry, ok := p.car.(*pair)
		if !ok {
			return nil, wrong(at, "assoc", 1, "list of pairs")
		}
		if eq, err := m.equal(args[0], entry.car, 0, at); err != nil || eq {
			return entry, err
		}
		l = p.cdr
	}
}
