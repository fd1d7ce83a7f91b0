package seatbelt

import "strings"

// String is the profile as text that Parse reads again, to the same verdicts.
// Parameters, functions and imports are gone from it.
func (p *Profile) String() string {
	var b strings.Builder
	if p.Version != 0 {
		b.WriteString("(version 1)\n")
	}
	if p.Debug != "" {
		b.WriteString("(debug " + p.Debug + ")\n")
	}
	for i := range p.Rules {
		b.WriteString(p.Rules[i].String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String is the rule as a profile has it.
func (r *Rule) String() string {
	w := writer{most: -1}
	w.add("(" + string(r.Action))
	for _, o := range r.Operations {
		w.add(" " + o)
	}
	for i := range r.Filters {
		w.add(" ")
		w.filter(&r.Filters[i])
	}
	for _, m := range r.Modifiers {
		w.add(" (with " + m.Name)
		for _, a := range m.Args {
			w.add(" " + quote(a))
		}
		w.add(")")
	}
	w.add(")")
	return w.b.String()
}

// String is the filter as a profile has it.
func (f *Filter) String() string {
	w := writer{most: -1}
	w.filter(f)
	return w.b.String()
}

// clipped is the beginning of the filter's text: filters can be huge.
func (f *Filter) clipped() string {
	w := writer{most: 1000}
	w.filter(f)
	return w.b.String()
}

// A writer stops at about so many bytes; -1: never.
type writer struct {
	b    strings.Builder
	most int
}

func (w *writer) full() bool { return w.most >= 0 && w.b.Len() > w.most }

func (w *writer) add(s string) {
	if !w.full() {
		w.b.WriteString(s)
	}
}

func (w *writer) filter(f *Filter) {
	if f.Kind == "literal" && len(f.Args) == 0 { // of (path-ancestors "/"): there are none
		w.add(`(path-ancestors "/")`)
		return
	}
	w.add("(" + f.Kind)
	args := f.Args
	if how := kindNamed(f.Kind).how; how == endpointIs && len(args) > 0 {
		w.add(" " + args[0])
		args = args[1:]
	}
	for _, a := range args {
		w.add(" " + quote(a))
	}
	for i := range f.Sub {
		if w.full() {
			break
		}
		w.add(" ")
		w.filter(&f.Sub[i])
	}
	w.add(")")
}
