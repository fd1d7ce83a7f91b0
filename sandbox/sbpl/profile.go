package sbpl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// A Profile is a profile of macOS's sandbox-exec that has been read.
type Profile struct {
	parsed  *seatbelt.Profile
	private bool // the host has no /private; see private.go
}

// An Error says why a text is no profile, and where: what sandbox-exec ends
// with status 65 for.
type Error struct {
	Name         string
	Line, Column int // from 1
	Message      string
}

// Error says it as sandbox-exec does.
func (e *Error) Error() string {
	return fmt.Sprintf("%s at %s, line %d", e.Message, e.Name, e.Line)
}

// Parse reads a profile. The name is what errors and reasons cite, and params
// what (param "KEY") yields. What macOS brings, such as system.sb, is imported
// from stand-ins of our own. Its errors are of type [*Error].
func Parse(name, text string, params map[string]string) (*Profile, error) {
	p, err := seatbelt.Parse(seatbelt.Source{Name: name, Text: text}, seatbelt.Options{Params: params})
	if err != nil {
		return nil, readable(err)
	}
	return &Profile{parsed: p}, nil
}

func readable(err error) error {
	var bad *seatbelt.Error
	if errors.As(err, &bad) {
		return &Error{Name: bad.Source, Line: bad.Line, Column: bad.Column, Message: bad.Message}
	}
	return err
}

// Warnings are what the profile's author would want to know: filters that match
// nothing, rules that the order of precedence decides otherwise than "the last
// match wins".
func (p *Profile) Warnings() []string {
	list := make([]string, len(p.parsed.Warnings))
	for i, w := range p.parsed.Warnings {
		list[i] = w.String()
	}
	return list
}

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

// Options says how a policy is made of a profile. The zero value makes one that
// is as near to the profile as this host allows.
type Options struct {
	// Strict refuses, with a [*WiderError], a profile of which Linux would hold less
	// than it says.
	Strict bool
}

// A WiderError lists the rules because of which a strict compilation was refused.
type WiderError struct{ Rules []Rule }

// Error names the first rule and says how many there are.
func (e *WiderError) Error() string {
	d := e.Rules[0].Differences[0]
	for _, one := range e.Rules[0].Differences {
		if one.Toward == Wider {
			d = one
			break
		}
	}
	s := fmt.Sprintf("Linux cannot hold %s: %s at %s", e.Rules[0].Text, d.Why, e.Rules[0].At)
	if n := len(e.Rules) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Policy returns a policy for this host that holds the profile, and each rule
// with its class. What exists is looked at now; see the package's
// documentation. The policy's Notes say the same as the rules.
//
// The error is a [*WiderError], only of a strict compilation, which returns the rules
// all the same.
func (p *Profile) Policy(o Options) (sandbox.Policy, []Rule, error) {
	return p.policy(o, thisHost{})
}

func (p *Profile) policy(o Options, h host) (sandbox.Policy, []Rule, error) {
	c, err := p.compiler(h)
	if err != nil {
		return sandbox.Policy{}, nil, err
	}
	c.compile()
	if o.Strict {
		var wider []Rule
		for _, r := range c.rules {
			if r.Is(Wider) {
				wider = append(wider, r)
			}
		}
		if len(wider) > 0 {
			return sandbox.Policy{}, c.rules, &WiderError{Rules: wider}
		}
	}
	return c.policy, c.rules, nil
}

// compiler makes a compiler whose rules have the profile's own texts.
func (p *Profile) compiler(h host) (*compiler, error) {
	here, err := p.here(h)
	if err != nil {
		return nil, err
	}
	texts := make([]Rule, 0, len(p.parsed.Rules)+1)
	for _, r := range p.parsed.Rules {
		texts = append(texts, Rule{At: r.At.String(), Text: textOf(r)})
	}
	texts = append(texts, Rule{At: p.parsed.Source, Text: "(deny default), which every profile begins with"})
	return newCompiler(here, texts, h), nil
}

// Names returns the names of the profiles that sandbox-exec -n takes.
func Names() []string { return seatbelt.Names() }

// Named returns our own profile of one of those names: it does what
// sandbox_init(3) says of it. A TMPDIR parameter is one more directory that
// no-write-except-temporary lets be written.
func Named(name string, params map[string]string) (*Profile, error) {
	source, ok := seatbelt.Named(name)
	if !ok {
		return nil, &Error{Name: name, Line: 1, Message: "profile not found"}
	}
	return Parse(source.Name, source.Text, params)
}
