package seatbelt

import (
	"fmt"
	"strings"
)

func doParam(m *machine, at Position, args []value) (value, error) {
	k, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "param", 0, "string")
	}
	if v, ok := m.options.Params[k]; ok {
		return v, m.fits(v, at)
	}
	return false, nil
}

func doDefined(m *machine, at Position, args []value) (value, error) {
	name, ok := text(args[0])
	if !ok {
		return nil, wrong(at, "defined?", 0, "symbol")
	}
	_, special := specialForms[name]
	_, known := m.find(name, nil)
	return known || special, nil
}

func doImport(m *machine, at Position, args []value) (value, error) {
	name, ok := args[0].(string)
	if !ok {
		return nil, wrong(at, "import", 0, "string")
	}
	if m.imports++; m.imports > m.limits.Imports {
		return nil, fail(at, "more than %d imports", m.limits.Imports)
	}
	find := m.options.Import
	if find == nil {
		find = Import
	}
	src, ok := find(name)
	if !ok {
		return nil, fail(at, "unable to open %s: not found", clip(name, 200))
	}
	if m.options.Import == nil {
		m.warnOnce(at, StandIn, "import "+src.Name, "%s is our own stand-in for %s", src.Name, clip(name, 200))
	}
	if m.nested++; m.nested > 32 {
		return nil, fail(at, "imports nested too deep")
	}
	defer func() { m.nested-- }()
	return unspecified{}, m.run(src)
}

func doError(m *machine, at Position, args []value) (value, error) {
	var words []string
	for _, a := range args {
		if t, ok := text(a); ok {
			words = append(words, clip(t, 200))
		} else {
			words = append(words, fmt.Sprintf("(%s)", kindOf(a)))
		}
	}
	said := strings.TrimSpace(strings.Join(words, " "))
	if said == "" {
		said = "error"
	}
	return nil, fail(at, "%s", clip(said, 1000))
}
