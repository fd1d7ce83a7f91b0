package sbpl

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// A Verdict is what a profile says of one thing that a process could try.
type Verdict struct {
	Allow bool
	At    string // the rule that decided: "agent.sb:12"; "": none, and what no rule allows is denied
	Text  string // the rule itself
	Why   string // a sentence

	Index int // of the rule among those that Policy returns
}

// Evaluate says whether the profile allows an operation on an argument: a path,
// which has to be absolute and to have no link in it; an address, "host:port" or
// "udp:host:port"; for signal "self", "same-sandbox" or "others"; or a name. It
// looks at nothing but the profile; see [Profile.Here].
func (p *Profile) Evaluate(operation, argument string) Verdict {
	q := queryOf(operation, argument)
	q.Alias = p.aliasOf(q.Path)
	v := p.parsed.Evaluate(q)
	out := Verdict{Allow: v.Allow, Why: v.Why, Index: len(p.parsed.Rules)}
	for i := range p.parsed.Rules {
		if r := &p.parsed.Rules[i]; r == v.Rule {
			out.At, out.Text, out.Index = r.At.String(), textOf(*r), i
		}
	}
	return out
}

func queryOf(operation, argument string) seatbelt.Query {
	q := seatbelt.Query{Operation: operation}
	switch {
	case strings.HasPrefix(argument, "/"):
		q.Path = argument
	case strings.HasPrefix(operation, "network"):
		q.Protocol, q.Address = "tcp", argument
		if address, udp := strings.CutPrefix(argument, "udp:"); udp {
			q.Protocol, q.Address = "udp", address
		} else if address, tcp := strings.CutPrefix(argument, "tcp:"); tcp {
			q.Address = address
		}
	case operation == "signal", strings.HasPrefix(operation, "process-info"):
		q.Target = argument
	default:
		q.Name = argument
	}
	return q
}
