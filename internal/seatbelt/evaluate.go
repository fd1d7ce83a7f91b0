package seatbelt

import (
	"fmt"
	"path"
	"strings"
)

// A hit is what the rules of one operation name have for a query.
type hit struct {
	op         string
	filtered   int // the last that matches, by filter; -1: none
	filter     *Filter
	unfiltered int
}

// Evaluate says what the profile answers to a query, and why.
func (p *Profile) Evaluate(q Query) Verdict {
	v, _ := p.evaluate(q)
	return v
}

// Decide is Evaluate for those who ask many queries and do not read the Why: of a
// query that a rule decides the Why is empty.
func (p *Profile) Decide(q Query) Verdict {
	v, _ := p.answer(q, false)
	return v
}

func (p *Profile) evaluate(query Query) (Verdict, int) { return p.answer(query, true) }

func (p *Profile) answer(query Query, reasons bool) (Verdict, int) {
	q := &asked{Query: query, proto: query.Protocol}
	if p.index == nil {
		return Verdict{Why: "the profile was not made by Parse"}, 0
	}
	if operationNamed[q.Operation].Name == "" && !p.newer[q.Operation] {
		return Verdict{Why: fmt.Sprintf("there is no operation %s", quote(clip(q.Operation, 80)))}, 0
	}
	if why := q.refused(); why != "" {
		return Verdict{Why: why}, 0
	}
	var hits []hit
	up := chain(q.Operation)
	for _, op := range up {
		if s := p.index.ops[op]; s != nil {
			h := hit{op: op, unfiltered: s.unfiltered}
			h.filtered, h.filter = s.last(q)
			hits = append(hits, h)
		}
	}
	return p.decide(q, up, hits, reasons), q.work
}

// refused says what is wrong with a query.
func (q *asked) refused() string {
	for _, p := range [...]string{q.Path, q.Alias} {
		if p != "" && (!strings.HasPrefix(p, "/") || path.Clean(p) != p) {
			return fmt.Sprintf("%s is not a resolved path", quote(clip(p, 200)))
		}
	}
	switch argument := operationNamed[q.Operation].Argument; {
	case argument == PathOf && q.Path == "":
		return q.Operation + " is asked about a path"
	case argument == AddressOf && q.Path == "" && q.Address == "":
		return q.Operation + " is asked about an address or a socket's path"
	}
	if q.proto == "" {
		q.proto = "tcp"
		if q.Path != "" {
			q.proto = "unix"
		}
	}
	return ""
}

// decide is the order of precedence; the hits are those of the concrete
// operation first.
func (p *Profile) decide(q *asked, up []string, hits []hit, reasons bool) Verdict {
	last := -1 // of "the last match wins"
	at, rule := -1, -1
	for i, h := range hits {
		last = max(last, h.filtered, h.unfiltered)
		if rule >= 0 {
			continue
		}
		if rule = h.filtered; rule < 0 { // step 2
			rule = h.unfiltered
		}
		if rule >= 0 { // step 1; and 4 by going on
			at = i
		}
	}
	if rule < 0 {
		return Verdict{Step: 4, Why: fmt.Sprintf("no rule of %s matches, and without one for default it is to deny", p.Source)}
	}
	h := hits[at]
	v := Verdict{Allow: p.Rules[rule].Action == Allow, Rule: &p.Rules[rule], Operation: h.op}
	if p.Rules[last].Action != v.Rule.Action {
		v.LastMatch = &p.Rules[last]
	}
	against := p.against(hits[at+1:], v.Rule.Action)
	switch {
	case h.op != up[0]:
		v.Step = 4
	case against != nil:
		v.Step = 1
	case h.filtered < 0 || h.unfiltered >= 0 && p.Rules[h.unfiltered].Action != v.Rule.Action:
		v.Step = 2
	default:
		v.Step = 3
	}
	if reasons {
		v.Why = p.why(v, h, up, against)
	}
	return v
}

// against is a rule of a parent, other than default, that says the opposite.
func (p *Profile) against(above []hit, action Action) *Rule {
	for _, h := range above {
		i := h.filtered
		if i < 0 {
			i = h.unfiltered
		}
		if i >= 0 && h.op != "default" {
			if p.Rules[i].Action != action {
				return &p.Rules[i]
			}
			return nil
		}
	}
	return nil
}

var verb = map[Action]string{Allow: "allows", Deny: "denies"}

// why is the reason in a sentence.
func (p *Profile) why(v Verdict, h hit, up []string, against *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", v.Rule.At, verb[v.Rule.Action], h.op)
	if h.filtered >= 0 {
		fmt.Fprintf(&b, " with %s", clip(h.filter.clipped(), 200))
	}
	switch v.Step {
	case 1:
		fmt.Fprintf(&b, "; it names the operation itself, and so beats %s, which %s a wildcard above it", against.At, verb[against.Action])
	case 2:
		if h.filtered >= 0 {
			fmt.Fprintf(&b, "; it has a filter, and so beats %s, which has none", p.Rules[h.unfiltered].At)
		} else {
			b.WriteString(", without a filter; no filtered rule of that operation matches")
		}
	case 3:
		b.WriteString("; it is the last rule of that operation that matches")
	case 4:
		below := up[:1]
		for i, op := range up {
			if op == h.op {
				below = up[:i]
			}
		}
		fmt.Fprintf(&b, "; no rule for %s decides", strings.Join(below, " or "))
	}
	if h.op == "default" && !v.Allow && OwnDefault(up[0]) {
		b.WriteString(" (macOS is said to have a default of its own there, to allow: deny it by name)")
	}
	if v.LastMatch != nil {
		fmt.Fprintf(&b, " (the last match in the text is %s, which %s)", v.LastMatch.At, verb[v.LastMatch.Action])
	}
	return b.String()
}
