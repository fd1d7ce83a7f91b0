package seatbelt

import (
	"fmt"
	"regexp"
)

// A Source is a profile's text and the name that errors and reasons cite. For
// a profile from the command line sandbox-exec's own name is "<input string>".
type Source struct{ Name, Text string }

// Options is what a profile is read with. The zero value has no parameters,
// imports our stand-ins, and is bounded by the default Limits.
type Options struct {
	// Params is what (param "KEY") yields; a missing key yields #f.
	Params map[string]string

	// Import finds what (import "name") names; nil is [Import], our stand-ins.
	Import func(name string) (Source, bool)

	// Limits bounds what a hostile profile may cost.
	Limits Limits

	// Fragment accepts a profile without (version 1), such as one that is
	// made to be joined with others.
	Fragment bool

	// NewerOperations accepts operations and modifiers that are not in our tables,
	// with a Warning each. A rule of such an operation stands below the wildcard whose
	// name it begins with. An unknown filter stays an error: what it lets through is unknown.
	NewerOperations bool
}

// An Action is what a rule does.
type Action string

// The actions.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
)

// A Profile is what a profile's text came to. Its fields are for reading:
// Evaluate uses an index that was made from them. It may be used by several
// goroutines at once.
type Profile struct {
	Source   string
	Version  int // 0 in a fragment that does not say
	Rules    []Rule
	Warnings []Warning
	Debug    string // of (debug deny) or (debug all)

	index *index
	newer map[string]bool // operations that are in none of our tables
}

// A Rule is one (allow ..) or (deny ..), in the order in which the profile made them.
type Rule struct {
	Action     Action
	Operations []string // at least one; a wildcard ends in '*', the root is "default"
	Filters    []Filter // any of them has to match; none: the rule is unfiltered
	Modifiers  []Modifier
	At         Position // of the form itself
	Call       Position // of the top-level form that made it, if that is another
}

// A Modifier is what (with ..) asks for, such as {"message", ["tag"]}.
type Modifier struct {
	Name string
	Args []string
}

// A Filter is a condition of a rule.
//
// Kind is the name in the profile, except that path, path-literal, path-regex and
// path-prefix are "literal", "regex" and "prefix", and path-ancestors is the "literal"
// of each ancestor. Any of Args has to match. For "remote" and "local", Args is the
// protocol (ip, tcp, udp, their 4 and 6, or unix-socket) and, unless every address is
// meant, the address; Sub is the path filters of a unix-socket, any of them. For
// "require-all", "require-any" and "require-not", Sub is what is required.
type Filter struct {
	Kind string
	Args []string
	Sub  []Filter

	match []matcher // of the regular expressions, as long as Args
}

// A Warning is something that a profile's author would want to know.
type Warning struct {
	At      Position
	Kind    WarningKind
	Message string
}

// A WarningKind is what a Warning is about.
type WarningKind string

// The kinds of warnings.
const (
	// Precedence: the order of precedence and "the last match wins" differ.
	Precedence WarningKind = "precedence"
	// Dead: the filter can match nothing.
	Dead WarningKind = "dead"
	// Wide: the rule matches more than it seems to.
	Wide WarningKind = "wide"
	// Newer: the name is in none of our tables.
	Newer WarningKind = "newer"
	// StandIn: an import was answered by our own text.
	StandIn WarningKind = "stand-in"
	// More: there were more warnings than are kept.
	More WarningKind = "more"
)

// String is the warning as one line.
func (w Warning) String() string { return fmt.Sprintf("%s: %s (%s)", w.At, w.Message, w.Kind) }

type matcher = *regexp.Regexp
