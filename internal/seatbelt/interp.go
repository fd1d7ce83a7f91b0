package seatbelt

import "fmt"

// Parse runs a profile's program and returns the rules it made. The error is
// an *Error.
func Parse(src Source, o Options) (*Profile, error) {
	m, err := parse(src, o)
	if err != nil {
		return nil, err
	}
	return m.profile, nil
}

func parse(src Source, o Options) (*machine, error) {
	m := &machine{
		options: o,
		limits:  o.Limits.orDefaults(),
		profile: &Profile{Source: src.Name, newer: map[string]bool{}},
		globals: map[string]value{},
		regexps: map[string]compiled{},
		warned:  map[string]bool{},
	}
	if err := m.run(src); err != nil {
		return nil, err
	}
	if m.profile.Version == 0 && !o.Fragment {
		return nil, &Error{Source: src.Name, Line: 1, Column: 1, Message: "missing version: a profile begins with (version 1)"}
	}
	m.profile.index = newIndex(m.profile.Rules)
	m.lint()
	return m, nil
}

// run evaluates every form of a text in the global environment.
func (m *machine) run(src Source) error {
	if m.bytes += len(src.Text); m.bytes > m.limits.Bytes {
		return &Error{Source: src.Name, Line: 1, Column: 1, Message: fmt.Sprintf("more than %d bytes of text", m.limits.Bytes)}
	}
	r := &reader{m: m, src: src.Name, text: src.Text, line: 1}
	forms, err := r.forms()
	if err != nil {
		return err
	}
	before, top := m.src, m.top
	for i := range forms {
		m.src, m.top = src.Name, m.posIn(src.Name, &forms[i])
		if _, err := m.eval(&forms[i], nil, src.Name); err != nil {
			return err
		}
	}
	m.src, m.top = before, top
	return nil
}

// eval is the value of a form of the text src.
func (m *machine) eval(n *node, e *env, src string) (value, error) {
	at := m.posIn(src, n)
	if err := m.spend(1, at); err != nil {
		return nil, err
	}
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
		return m.lookup(n.text, e, at)
	}
	if len(n.list) == 0 {
		return null{}, nil
	}
	if n.tail {
		return nil, fail(at, "a dotted list cannot be evaluated")
	}
	if m.depth++; m.depth > m.deepest() {
		return nil, fail(at, "calls nested too deep")
	}
	defer func() { m.depth-- }()
	head := &n.list[0]
	if head.kind == symbolNode {
		if do, is := specialForms[head.text]; is && !m.rebound(head.text, e) {
			return do(m, &scope{e, src, at}, n.list[1:])
		}
	}
	f, err := m.eval(head, e, src)
	if err != nil {
		return nil, err
	}
	args := make([]value, len(n.list)-1)
	for i := range args {
		if args[i], err = m.eval(&n.list[i+1], e, src); err != nil {
			return nil, err
		}
	}
	return m.apply(f, args, at)
}

// rebound: the profile has its own meaning for the name of a special form.
func (m *machine) rebound(name string, e *env) bool {
	if _, ok := m.globals[name]; ok {
		return true
	}
	return m.local(name, e) != nil
}

// local is the place of a local variable. A long search counts; the next
// step's check sees it.
func (m *machine) local(name string, e *env) *value {
	v, looked := e.find(name)
	m.steps += looked / 16
	return v
}

// find is the value of a name: the profile's own, ours, or an operation.
func (m *machine) find(name string, e *env) (value, bool) {
	if v := m.local(name, e); v != nil {
		return *v, true
	}
	if v, ok := m.globals[name]; ok {
		return v, true
	}
	if f, ok := builtins[name]; ok {
		return f, true
	}
	if _, ok := operationNamed[name]; ok {
		return operation(name), true
	}
	return nil, false
}

func (m *machine) lookup(name string, e *env, at Position) (value, error) {
	if v, ok := m.find(name, e); ok {
		return v, nil
	}
	if m.options.NewerOperations && newerParent(name) != "" {
		m.warnOnce(at, Newer, name, "the operation %s is in none of our tables; its rules stand below %s", name, newerParent(name))
		m.profile.newer[name] = true
		return operation(name), nil
	}
	return nil, fail(at, "unbound variable: %s", clip(name, 80))
}

// apply calls a function.
func (m *machine) apply(f value, args []value, at Position) (value, error) {
	switch f := f.(type) {
	case *builtin:
		if len(args) < f.min || f.max >= 0 && len(args) > f.max {
			return nil, fail(at, "%s: wrong number of arguments: %d", f.name, len(args))
		}
		if err := m.spend(1+len(args), at); err != nil {
			return nil, err
		}
		return f.do(m, at, args)
	case *closure:
		return m.call(f, args, at)
	}
	return nil, fail(at, "%s is not a procedure", kindOf(f))
}

func (m *machine) call(f *closure, args []value, at Position) (value, error) {
	if len(args) < len(f.args) || f.rest == "" && len(args) > len(f.args) {
		return nil, fail(at, "%s: wrong number of arguments: %d", f.name, len(args))
	}
	if err := m.spend(4+4*len(args), at); err != nil {
		return nil, err
	}
	if m.depth++; m.depth > m.deepest() {
		return nil, fail(at, "calls nested too deep")
	}
	defer func() { m.depth-- }()
	local := &env{names: f.args, vals: args[:len(f.args):len(f.args)], up: f.env}
	if f.rest != "" {
		rest, err := m.list(args[len(f.args):], at)
		if err != nil {
			return nil, err
		}
		local = &env{names: []string{f.rest}, vals: []value{rest}, up: local}
	}
	// Definitions in the body are the call's own.
	return m.body(f.body, &env{up: local}, f.src)
}

// body evaluates forms in order, to the last one's value.
func (m *machine) body(forms []node, e *env, src string) (value, error) {
	var v value = unspecified{}
	var err error
	for i := range forms {
		if v, err = m.eval(&forms[i], e, src); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (m *machine) in(s *scope, n *node) (value, error) { return m.eval(n, s.env, s.src) }
