package seatbelt

func formIf(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("if", args, 2, 3); err != nil {
		return nil, err
	}
	c, err := m.in(s, &args[0])
	switch {
	case err != nil:
		return nil, err
	case truth(c):
		return m.in(s, &args[1])
	case len(args) == 3:
		return m.in(s, &args[2])
	}
	return unspecified{}, nil
}

func formWhen(m *machine, s *scope, args []node) (value, error) {
	return m.onlyIf(s, "when", args, true)
}

func formUnless(m *machine, s *scope, args []node) (value, error) {
	return m.onlyIf(s, "unless", args, false)
}

func (m *machine) onlyIf(s *scope, name string, args []node, want bool) (value, error) {
	if err := s.want(name, args, 1, -1); err != nil {
		return nil, err
	}
	c, err := m.in(s, &args[0])
	if err != nil || truth(c) != want {
		return unspecified{}, err
	}
	return m.body(args[1:], s.env, s.src)
}

func formCond(m *machine, s *scope, args []node) (value, error) {
	for i := range args {
		c := &args[i]
		if c.kind != listNode || len(c.list) == 0 || c.tail {
			return nil, fail(s.pos(m, c), "syntax error in cond")
		}
		if c.list[0].kind == symbolNode && c.list[0].text == "else" {
			return m.body(c.list[1:], s.env, s.src)
		}
		v, err := m.in(s, &c.list[0])
		if err != nil {
			return nil, err
		}
		if !truth(v) {
			continue
		}
		if len(c.list) == 1 {
			return v, nil
		}
		if len(c.list) == 3 && c.list[1].kind == symbolNode && c.list[1].text == "=>" {
			f, err := m.in(s, &c.list[2])
			if err != nil {
				return nil, err
			}
			return m.apply(f, []value{v}, s.at)
		}
		return m.body(c.list[1:], s.env, s.src)
	}
	return unspecified{}, nil
}

func formCase(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("case", args, 1, -1); err != nil {
		return nil, err
	}
	v, err := m.in(s, &args[0])
	if err != nil {
		return nil, err
	}
	for i := range args[1:] {
		c := &args[i+1]
		if c.kind != listNode || len(c.list) == 0 || c.tail {
			return nil, fail(s.pos(m, c), "syntax error in case")
		}
		hit := c.list[0].kind == symbolNode && c.list[0].text == "else"
		for j := range c.list[0].list {
			w, err := m.datum(s, &c.list[0].list[j])
			if err != nil {
				return nil, err
			}
			eq, err := m.same(v, w, s.at)
			if err != nil {
				return nil, err
			}
			hit = hit || eq
		}
		if hit {
			return m.body(c.list[1:], s.env, s.src)
		}
	}
	return unspecified{}, nil
}

func formBegin(m *machine, s *scope, args []node) (value, error) {
	return m.body(args, s.env, s.src)
}

func formAnd(m *machine, s *scope, args []node) (value, error) {
	var v value = true
	var err error
	for i := range args {
		if v, err = m.in(s, &args[i]); err != nil || !truth(v) {
			return v, err
		}
	}
	return v, nil
}

func formOr(m *machine, s *scope, args []node) (value, error) {
	var v value = false
	var err error
	for i := range args {
		if v, err = m.in(s, &args[i]); err != nil || truth(v) {
			return v, err
		}
	}
	return v, nil
}

func formDebug(m *machine, s *scope, args []node) (value, error) {
	if len(args) != 1 || args[0].kind != symbolNode {
		return nil, fail(s.at, "syntax error in debug")
	}
	m.profile.Debug = args[0].text
	return unspecified{}, nil
}

func formVersion(m *machine, s *scope, args []node) (value, error) {
	if len(args) != 1 || args[0].kind != numberNode {
		return nil, fail(s.at, "syntax error in version")
	}
	if args[0].num != 1 {
		return nil, fail(s.at, "unsupported version: %d", args[0].num)
	}
	m.profile.Version = 1
	return unspecified{}, nil
}
