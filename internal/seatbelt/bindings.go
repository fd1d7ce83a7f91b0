package seatbelt

func formDefine(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("define", args, 1, -1); err != nil {
		return nil, err
	}
	name, v, err := m.definition(s, args)
	if err != nil {
		return nil, err
	}
	return symbol(name), m.bind(s, name, v)
}

// definition is the name and the value of (define NAME VALUE) or (define
// (NAME ARGS..) BODY..).
func (m *machine) definition(s *scope, args []node) (string, value, error) {
	head := &args[0]
	switch {
	case head.kind == symbolNode && len(args) >= 2:
		if len(args) > 2 {
			m.warn(s.at, Dead, "(define %s ..) takes the first value only", clip(head.text, 80))
		}
		v, err := m.in(s, &args[1])
		if c, is := v.(*closure); is && c.name == "" {
			c.name = head.text
		}
		return head.text, v, err
	case head.kind == listNode && len(head.list) > 0 && head.list[0].kind == symbolNode:
		params := *head
		params.list = head.list[1:]
		if head.tail && len(params.list) == 1 { // (define (f . rest) ..)
			params = params.list[0]
		}
		f, err := m.lambda(s, &params, args[1:])
		if err != nil {
			return "", nil, err
		}
		f.name = head.list[0].text
		return f.name, f, nil
	}
	return "", nil, fail(s.at, "syntax error in define")
}

// bind defines a name in the innermost body, or globally.
func (m *machine) bind(s *scope, name string, v value) error {
	if err := m.spend(4, s.at); err != nil {
		return err
	}
	if s.env == nil {
		m.globals[name] = v
		return nil
	}
	for i, n := range s.env.names {
		if n == name {
			s.env.vals[i] = v
			return nil
		}
	}
	if len(s.env.names) >= maxLocals {
		return fail(s.at, "more than %d definitions in one body", maxLocals)
	}
	s.env.names = append(s.env.names[:len(s.env.names):len(s.env.names)], name)
	s.env.vals = append(s.env.vals[:len(s.env.vals):len(s.env.vals)], v)
	return nil
}

// maxLocals bounds a frame, which is searched from end to end.
const maxLocals = 256

func formDefineOnce(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("define-once", args, 1, -1); err != nil {
		return nil, err
	}
	head := &args[0]
	if head.kind == listNode && len(head.list) > 0 {
		head = &head.list[0]
	}
	if m.rebound(head.text, s.env) {
		return unspecified{}, nil
	}
	return formDefine(m, s, args)
}

func formSet(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("set!", args, 2, 2); err != nil {
		return nil, err
	}
	name := args[0].text
	v, err := m.in(s, &args[1])
	if err != nil || args[0].kind != symbolNode {
		return nil, orFail(err, s.at, "syntax error in set!")
	}
	if old := m.local(name, s.env); old != nil {
		*old = v
	} else if _, ok := m.globals[name]; ok {
		m.globals[name] = v
	} else {
		return nil, fail(s.at, "unbound variable: %s", clip(name, 80))
	}
	return unspecified{}, nil
}

func orFail(err error, at Position, message string) error {
	if err != nil {
		return err
	}
	return fail(at, "%s", message)
}

func formLambda(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("lambda", args, 2, -1); err != nil {
		return nil, err
	}
	return m.lambda(s, &args[0], args[1:])
}

// lambda reads parameters: a name, (a b) or (a . rest).
func (m *machine) lambda(s *scope, params *node, body []node) (*closure, error) {
	f := &closure{body: body, env: s.env, src: s.src}
	if params.kind == symbolNode {
		f.rest = params.text
		return f, nil
	}
	if params.kind != listNode || len(params.list) > maxLocals {
		return nil, fail(s.at, "syntax error in lambda")
	}
	for i := range params.list {
		p := &params.list[i]
		if p.kind != symbolNode {
			return nil, fail(s.pos(m, p), "a parameter has to be a name")
		}
		if params.tail && i == len(params.list)-1 {
			f.rest = p.text
			break
		}
		f.args = append(f.args, p.text)
	}
	return f, m.spend(4+4*len(f.args), s.at)
}

// bindings are the names and forms of a let.
func (m *machine) bindings(s *scope, n *node) ([]string, []*node, error) {
	if n.kind != listNode || n.tail || len(n.list) > maxLocals {
		return nil, nil, fail(s.at, "syntax error in let")
	}
	var names []string
	var forms []*node
	for i := range n.list {
		b := &n.list[i]
		if b.kind != listNode || len(b.list) < 2 || b.tail || b.list[0].kind != symbolNode {
			return nil, nil, fail(s.pos(m, b), "syntax error in let")
		}
		if len(b.list) > 2 {
			m.warn(s.pos(m, b), Dead, "let takes the first value of %s only", clip(b.list[0].text, 80))
		}
		names, forms = append(names, b.list[0].text), append(forms, &b.list[1])
	}
	return names, forms, m.spend(4+4*len(names), s.at)
}

func formLet(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("let", args, 2, -1); err != nil {
		return nil, err
	}
	loop := ""
	if args[0].kind == symbolNode { // (let NAME ((var init) ..) body ..)
		loop, args = args[0].text, args[1:]
		if err := s.want("let", args, 2, -1); err != nil {
			return nil, err
		}
	}
	names, forms, err := m.bindings(s, &args[0])
	if err != nil {
		return nil, err
	}
	vals := make([]value, len(forms))
	for i, f := range forms {
		if vals[i], err = m.in(s, f); err != nil {
			return nil, err
		}
	}
	if loop == "" {
		return m.body(args[1:], &env{names: names, vals: vals, up: s.env}, s.src)
	}
	f := &closure{name: loop, args: names, body: args[1:], src: s.src}
	f.env = &env{names: []string{loop}, vals: []value{f}, up: s.env}
	return m.call(f, vals, s.at)
}

func formLetStar(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("let*", args, 2, -1); err != nil {
		return nil, err
	}
	names, forms, err := m.bindings(s, &args[0])
	if err != nil {
		return nil, err
	}
	e := s.env
	for i, f := range forms {
		v, err := m.eval(f, e, s.src)
		if err != nil {
			return nil, err
		}
		e = &env{names: names[i : i+1 : i+1], vals: []value{v}, up: e}
	}
	return m.body(args[1:], &env{up: e}, s.src)
}

func formLetrec(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("letrec", args, 2, -1); err != nil {
		return nil, err
	}
	names, forms, err := m.bindings(s, &args[0])
	if err != nil {
		return nil, err
	}
	e := &env{names: names, vals: make([]value, len(names)), up: s.env}
	for i := range e.vals {
		e.vals[i] = unspecified{}
	}
	for i, f := range forms {
		if e.vals[i], err = m.eval(f, e, s.src); err != nil {
			return nil, err
		}
	}
	return m.body(args[1:], e, s.src)
}
