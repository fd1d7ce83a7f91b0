package seatbelt

// datum is a form as data.
func (m *machine) datum(s *scope, n *node) (value, error) {
	switch n.kind {
	case stringNode:
		return n.text, nil
	case numberNode:
		return n.num, nil
	case boolNode:
		return n.num == 1, nil
	case charNode:
		return char(n.num), nil
	case symbolNode:
		return symbol(n.text), nil
	}
	return m.listOf(s, n, false, m.datum)
}

// listOf is a list form as a list of what each does to its elements. A spliced
// element is a list, whose elements take its place.
func (m *machine) listOf(s *scope, n *node, splice bool, each func(*scope, *node) (value, error)) (value, error) {
	if err := m.spend(1+4*len(n.list), s.at); err != nil {
		return nil, err
	}
	var l value = null{}
	for i := len(n.list) - 1; i >= 0; i-- {
		v, err := each(s, &n.list[i])
		switch {
		case err != nil:
			return nil, err
		case n.tail && i == len(n.list)-1:
			l = v
		case splice && quoteOf(&n.list[i]) == "unquote-splicing":
			if l, err = doAppend(m, s.at, []value{v, l}); err != nil {
				return nil, err
			}
		default:
			l = &pair{v, l}
		}
	}
	return l, nil
}

// quoteOf is the name of the quote that a form is, if it is one.
func quoteOf(n *node) string {
	if n.kind == listNode && len(n.list) == 2 && n.list[0].kind == symbolNode {
		return n.list[0].text
	}
	return ""
}

func formQuote(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("quote", args, 1, 1); err != nil {
		return nil, err
	}
	return m.datum(s, &args[0])
}

func formQuasiquote(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("quasiquote", args, 1, 1); err != nil {
		return nil, err
	}
	if quoteOf(&args[0]) == "unquote-splicing" {
		return nil, fail(s.at, "nothing to splice into")
	}
	return m.quasi(s, &args[0])
}

// quasi is a form as data, in which ,x is x's value and ,@x its elements. They do not nest.
func (m *machine) quasi(s *scope, n *node) (value, error) {
	if n.kind != listNode {
		return m.datum(s, n)
	}
	switch quoteOf(n) {
	case "unquote", "unquote-splicing":
		return m.in(s, &n.list[1])
	case "quasiquote":
		return nil, fail(s.pos(m, n), "quasiquote in quasiquote is not supported")
	}
	return m.listOf(s, n, true, m.quasi)
}

func formEval(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("eval", args, 1, 1); err != nil {
		return nil, err
	}
	v, err := m.in(s, &args[0])
	if err != nil {
		return nil, err
	}
	n, err := m.form(v, 0, s.at)
	if err != nil {
		return nil, err
	}
	return m.eval(&n, nil, s.src) // as everywhere in the global environment
}

// form is data as a form again, as if it stood at a place.
func (m *machine) form(v value, depth int, at Position) (node, error) {
	n := node{line: int32(at.Line), col: int32(at.Column)}
	if depth > m.limits.Depth {
		return n, fail(at, "nested too deep: more than %d", m.limits.Depth)
	}
	if err := m.spend(8, at); err != nil {
		return n, err
	}
	switch v := v.(type) {
	case string:
		n.kind, n.text = stringNode, v
	case symbol:
		n.kind, n.text = symbolNode, string(v)
	case int64:
		n.kind, n.num = numberNode, v
	case char:
		n.kind, n.num = charNode, int64(v)
	case bool:
		if n.kind = boolNode; v {
			n.num = 1
		}
	case operation: // its name has its value
		n.kind, n.text = symbolNode, string(v)
	case null, *pair:
		l, ok := slice(v)
		if !ok {
			return n, fail(at, "a dotted list cannot be evaluated")
		}
		n.kind = listNode
		for _, e := range l {
			f, err := m.form(e, depth+1, at)
			if err != nil {
				return n, err
			}
			n.list = append(n.list, f)
		}
	default:
		return n, fail(at, "eval: %s is no form", kindOf(v))
	}
	return n, nil
}
