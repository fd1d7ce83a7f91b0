package sbpl

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

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

// compile does all of it. The order matters: what can be read has to be known
// before the network, whose sockets lie in it.
func (c *compiler) compile() {
	c.policy.Root = &rootfs.Layout{}
	c.policy.Env.Pass = []string{"*"}
	c.policy.Files.Protect.Off = true
	c.collect()
	c.decide()
	c.emit()
	c.protect()
	c.network()
	c.processes()
	c.statuses()
	c.kindsLater()
	if len(c.calls) > 0 {
		c.policy.Syscalls = seccomp.Default().With(c.calls...)
	}
	c.classify()
	if c.hasDefault() {
		c.rules = c.rules[:len(c.rules)-1]
	}
	for _, r := range c.rules {
		c.policy.Notes = append(c.policy.Notes, r.note())
	}
}

// hasDefault reports whether a rule of the profile decides what no other does.
func (c *compiler) hasDefault() bool {
	return slices.ContainsFunc(c.profile.Rules, func(r seatbelt.Rule) bool {
		return len(r.Filters) == 0 && slices.Contains(r.Operations, "default")
	})
}
