package seatbelt

// ruleBuiltin is allow or deny: operations, then filters, and modifiers anywhere.
func ruleBuiltin(action Action) *builtin {
	return &builtin{name: string(action), min: 1, max: -1, do: func(m *machine, at Position, args []value) (value, error) {
		r := Rule{Action: action, At: at}
		if m.top != at {
			r.Call = m.top
		}
		var filters filter // collects, to be counted
		for i, a := range args {
			switch a := a.(type) {
			case operation:
				if len(filters.Sub) > 0 {
					return nil, fail(at, "%s: an operation behind a filter", action)
				}
				r.Operations = append(r.Operations, string(a))
			case *filter:
				filters.add(a)
			case *Modifier:
				r.Modifiers = append(r.Modifiers, *a)
			default:
				return nil, fail(at, "%s: argument %d must be: operation, filter or modifier, not %s", action, i+1, kindOf(a))
			}
		}
		if len(r.Operations) == 0 {
			return nil, fail(at, "%s: no operation", action)
		}
		r.Filters = filters.Sub
		return unspecified{}, m.add(r, &filters, at)
	}}
}

// add puts a rule into the profile, below the filters of with-filter.
func (m *machine) add(r Rule, filters *filter, at Position) error {
	size := 8 + filters.size + 4*len(r.Operations)
	if len(m.within) > 0 {
		all := &filter{Filter: Filter{Kind: "require-all"}}
		for _, w := range m.within {
			all.add(w)
		}
		switch len(r.Filters) {
		case 0:
		case 1:
			all.Sub = append(all.Sub, r.Filters[0])
		default:
			all.Sub = append(all.Sub, Filter{Kind: "require-any", Sub: r.Filters})
		}
		r.Filters = []Filter{all.Filter}
		if len(all.Sub) == 1 {
			r.Filters = all.Sub
		}
		size += all.size
	}
	if len(m.profile.Rules) >= m.limits.Rules {
		return fail(at, "more than %d rules", m.limits.Rules)
	}
	m.profile.Rules = append(m.profile.Rules, r)
	return m.spend(size, at)
}

// formWith is (with MODIFIER ARG ..).
func formWith(m *machine, s *scope, args []node) (value, error) {
	if len(args) == 0 || args[0].kind != symbolNode {
		return nil, fail(s.at, "syntax error in with")
	}
	mod := &Modifier{Name: args[0].text}
	arity, known := modifiers[mod.Name]
	switch {
	case !known && !m.options.NewerOperations:
		return nil, fail(s.at, "unknown modifier: %s", clip(mod.Name, 80))
	case !known:
		m.warnOnce(s.at, Newer, "with "+mod.Name, "the modifier %s is in none of our tables", clip(mod.Name, 80))
	case arity >= 0 && len(args)-1 != arity:
		return nil, fail(s.at, "%s: wrong number of arguments: %d", mod.Name, len(args)-1)
	}
	for i := range args[1:] {
		n := &args[i+1]
		if n.kind == symbolNode {
			t, _ := text(m.constant(n.text, s.env)) // SIGKILL
			mod.Args = append(mod.Args, t)
			continue
		}
		v, err := m.in(s, n)
		if err != nil {
			return nil, err
		}
		t, ok := text(v)
		if !ok {
			return nil, fail(s.at, "%s: argument %d must be: string", mod.Name, i+1)
		}
		mod.Args = append(mod.Args, t)
	}
	if mod.Name == "no-sandbox" {
		m.warn(s.at, Wide, "(with no-sandbox) lets the executed program out of the sandbox")
	}
	return mod, m.spend(2+len(mod.Args), s.at)
}

// modifiers are the known ones and how many arguments they take; -1 is any number.
var modifiers = map[string]int{
	"message": 1, "no-log": 0, "no-report": 0, "report": -1, "no-sandbox": 0, "send-signal": 1, "telemetry": -1, "no-telemetry": 0,
	"backtrace": -1, "no-backtrace": 0, "deprecated": -1, "rootless": 0, "user-approval": 0, "file-approval-override": -1,
	"partial-symbolication": 0, "no-callout": 0, "no-times": 0, "no-profile": 0, "profile": 1, "telemetry-backtrace": 0, "grant": -1, "log": 0,
	"errno": 1, "apply-message-filter": -1, "debug": -1,
}

// formWithFilter is (with-filter FILTER BODY ..): the rules of the body also require FILTER.
func formWithFilter(m *machine, s *scope, args []node) (value, error) {
	if err := s.want("with-filter", args, 1, -1); err != nil {
		return nil, err
	}
	v, err := m.in(s, &args[0])
	if err != nil {
		return nil, err
	}
	f, ok := v.(*filter)
	if !ok {
		return nil, fail(s.at, "with-filter: argument 1 must be: filter")
	}
	if len(m.within) >= m.limits.Depth {
		return nil, fail(s.at, "filters nested too deep: more than %d", m.limits.Depth)
	}
	m.within = append(m.within, f)
	v, err = m.body(args[1:], s.env, s.src)
	m.within = m.within[:len(m.within)-1]
	return v, err
}
