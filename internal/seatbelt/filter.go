package seatbelt

import (
	"slices"
	"strings"
)

// filterBuiltin is the function that makes a filter of one kind of strings.
func filterBuiltin(name string) *builtin {
	k := kinds[name]
	least := 1
	if k.how == flagIs {
		least = 0
	}
	return &builtin{name: name, min: least, max: -1, do: func(m *machine, at Position, args []value) (value, error) {
		texts := make([]string, len(args))
		for i, a := range args {
			s, ok := text(a)
			if !ok || !k.constants && kindOf(a) != "a string" {
				return nil, fail(at, "%s: argument %d must be: string", name, i+1)
			}
			if k.values != nil && !slices.Contains(k.values, s) {
				return nil, fail(at, "%s: no such constant: %s", name, clip(s, 80))
			}
			texts[i] = s
		}
		return m.simple(name, texts, at)
	}}
}

// constantForm is the special form of a filter on constants: a name that has no
// value stands for itself.
func constantForm(name string) func(*machine, *scope, []node) (value, error) {
	make := filterBuiltin(name)
	return func(m *machine, s *scope, args []node) (value, error) {
		var vals []value
		for i := range args {
			if n := &args[i]; n.kind == symbolNode {
				vals = append(vals, m.constant(n.text, s.env))
				continue
			}
			v, err := m.in(s, &args[i])
			if err != nil {
				return nil, err
			}
			vals = append(vals, v)
		}
		return m.apply(make, vals, s.at)
	}
}

// constant is a variable's value, if that can be a filter's argument, or else the name.
func (m *machine) constant(name string, e *env) value {
	if v, ok := m.find(name, e); ok {
		if _, ok := text(v); ok {
			return v
		}
	}
	return symbol(name)
}

// simple makes a filter without others in it.
func (m *machine) simple(name string, args []string, at Position) (value, error) {
	k := kinds[name]
	f := &filter{Filter: Filter{Kind: name, Args: args}, size: 1 + len(args), depth: 1}
	if k.canonical != "" {
		f.Kind = k.canonical
	}
	switch k.how {
	case pathAncestors:
		f.Args = ancestors(args)
		f.size = 1 + len(f.Args)
	case pathMatches, factMatches:
		for _, a := range args {
			re, err := m.regexp(a, at)
			if err != nil {
				return nil, err
			}
			f.match = append(f.match, re)
		}
	}
	switch k.how {
	case pathIs, pathBelow, pathBegins, pathAncestors:
		for _, a := range args {
			m.warnPath(name, a, at)
		}
	}
	return f, m.spend(4*f.size, at)
}

// ancestors of each path, without the path itself: / first.
func ancestors(paths []string) []string {
	var all []string
	for _, p := range paths {
		for i := 0; i < len(p); i++ {
			if p[i] != '/' || i == len(p)-1 {
				continue
			}
			up := p[:max(i, 1)]
			if !slices.Contains(all, up) && len(all) < 1024 {
				all = append(all, up)
			}
		}
	}
	return all
}

// aliases are symbolic links at the root of every macOS: no resolved path begins with them.
var aliases = []string{"/tmp", "/var", "/etc"}

// warnPath warns of paths that no resolved path can be.
func (m *machine) warnPath(kind, p string, at Position) {
	why := ""
	switch {
	case !strings.HasPrefix(p, "/"):
		why = "it is not absolute"
	case p != "/" && strings.HasSuffix(p, "/") && kind != "prefix" && kind != "path-prefix":
		why = "it ends in a slash"
	case strings.Contains(p, "//") || strings.Contains(p+"/", "/./") || strings.Contains(p+"/", "/../"):
		why = "it is not a clean path"
	default:
		for _, a := range aliases {
			if p == a || strings.HasPrefix(p, a+"/") {
				if p == a && kind != "subpath" && kind != "path-subpath" {
					return // the link itself can be read
				}
				why = a + " is a symbolic link to /private" + a
			}
		}
	}
	if why != "" {
		m.warn(at, Dead, "(%s %s) matches no resolved path: %s", kind, quote(clip(p, 80)), why)
	}
}

// combine makes require-all, require-any or require-not.
func combine(name string, least, most int) *builtin {
	return &builtin{name: name, min: least, max: most, do: func(m *machine, at Position, args []value) (value, error) {
		f := &filter{Filter: Filter{Kind: name}, size: 1}
		for i, a := range args {
			sub, ok := a.(*filter)
			if !ok {
				return nil, fail(at, "%s: argument %d must be: filter", name, i+1)
			}
			f.add(sub)
		}
		return m.made(f, at)
	}}
}

func (f *filter) add(sub *filter) {
	f.Sub = append(f.Sub, sub.Filter)
	f.size += min(sub.size, 1<<40)
	f.depth = max(f.depth, sub.depth)
}

// made counts a filter that holds others.
func (m *machine) made(f *filter, at Position) (value, error) {
	if f.depth++; f.depth > m.limits.Depth {
		return nil, fail(at, "filters nested too deep: more than %d", m.limits.Depth)
	}
	return f, m.spend(f.size, at)
}

// endpointForm is (remote PROTOCOL ADDRESS) or (remote unix-socket FILTER ..).
func endpointForm(name string) func(*machine, *scope, []node) (value, error) {
	return func(m *machine, s *scope, args []node) (value, error) {
		if len(args) == 0 || args[0].kind != symbolNode || protocols[args[0].text] == "" {
			return nil, fail(s.at, "%s: argument 1 must be: a protocol", name)
		}
		f := &filter{Filter: Filter{Kind: name, Args: []string{protocols[args[0].text]}}, size: 2, depth: 1}
		for i := range args[1:] {
			v, err := m.in(s, &args[i+1])
			if err != nil {
				return nil, err
			}
			if err := f.endpoint(name, v, s.at); err != nil {
				return nil, err
			}
		}
		return m.made(f, s.at)
	}
}

// endpoint adds an address, or a filter on a unix socket's path.
func (f *filter) endpoint(name string, v value, at Position) error {
	unix := f.Args[0] == "unix-socket"
	switch v := v.(type) {
	case *filter:
		if !unix {
			return fail(at, "%s: a filter is for a unix-socket", name)
		}
		f.add(v)
		return nil
	case string:
		if unix {
			f.add(&filter{Filter: Filter{Kind: "literal", Args: []string{v}}, size: 2, depth: 1})
			return nil
		}
		if _, err := parseEndpoint(v); err != nil {
			return fail(at, "%s", err)
		}
		f.Args = append(f.Args, v)
		f.size++
		return nil
	}
	return fail(at, "%s: an address must be: string", name)
}
