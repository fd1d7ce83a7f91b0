package sbpl

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Class says how much of a rule Linux holds.
type Class string

// The classes.
const (
	Exact       Class = "exact"       // what the rule says and what the kernel does agree
	Approximate Class = "approximate" // they differ, as the rule's Differences say
	Vacuous     Class = "vacuous"     // it is about something that is not on this host
)

// A Toward says on which side a difference lies.
type Toward string

// The sides.
const (
	// Narrower: something that the profile allows cannot be done.
	Narrower Toward = "narrower"
	// Wider: something of the host can be done, or seen, that the profile denies. A
	// strict compilation refuses these.
	Wider Toward = "wider"
	// Own: something that the profile denies can be done, to what exists in this
	// sandbox alone: a stand-in, its own loopback, its own processes.
	Own Toward = "own"
)

// A Difference is one way in which what is enforced is not what the profile says.
type Difference struct {
	Operations []string // which operations it concerns, "file-write*" all of them
	Toward     Toward
	Why        string
}

// concerns reports whether the difference is about an operation.
func (d Difference) concerns(operation string) bool {
	return slices.ContainsFunc(d.Operations, func(o string) bool { return covers(o, operation) })
}

// covers reports whether name is the operation or a wildcard over it.
func covers(name, operation string) bool {
	parent, wild := strings.CutSuffix(name, "*")
	return name == operation || name == "default" || wild && strings.HasPrefix(operation, parent)
}

// A Rule is one rule of a profile and how it is held.
type Rule struct {
	At          string // "agent.sb:12"; of the default of a profile that has none, its name
	Text        string // the rule itself
	Class       Class
	Differences []Difference // of an approximate rule: at least one
	Why         string       // of a vacuous rule: what there is not
}

// Differs returns the difference that concerns an operation, or nil.
func (r Rule) Differs(operation string) *Difference {
	for i := range r.Differences {
		if r.Differences[i].concerns(operation) {
			return &r.Differences[i]
		}
	}
	return nil
}

// Is reports whether one of the differences lies on that side.
func (r Rule) Is(side Toward) bool {
	return slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Toward == side })
}

// String returns the rule and its class as one line.
func (r Rule) String() string { return r.note().String() }

func (r Rule) note() policy.Note {
	why := []string{}
	if r.Why != "" {
		why = append(why, r.Why)
	}
	for _, d := range r.Differences {
		why = append(why, string(d.Toward)+" for "+strings.Join(d.Operations, " ")+": "+d.Why)
	}
	return policy.Note{At: r.At, Rule: r.Text, Class: string(r.Class), Why: strings.Join(why, "; ")}
}

// differ adds a difference, each once.
func (r *Rule) differ(side Toward, why string, operations ...string) {
	if len(operations) == 0 {
		return
	}
	for i := range r.Differences {
		d := &r.Differences[i]
		if d.Toward != side || d.Why != why {
			continue
		}
		for _, o := range operations {
			if !d.concerns(o) {
				d.Operations = append(d.Operations, o)
			}
		}
		return
	}
	r.Differences = append(r.Differences, Difference{Operations: slices.Clone(operations), Toward: side, Why: why})
}

func textOf(r seatbelt.Rule) string {
	s := r.String()
	if len(s) > mostText {
		s = s[:mostText] + " ...)"
	}
	return s
}

// mostText is how long the text of a rule may be in a report.
const mostText = 400
