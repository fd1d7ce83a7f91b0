package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// A Widening is one value that a policy lacks, and by which something that a run was denied would be allowed.
type Widening struct {
	Field string `json:"field"` // "Files.Read", "Files.Write", "Network.Hosts" or "Network.UDP"
	Value string `json:"value"`
	Why   string `json:"why,omitempty"`  // of a Suggestion: what was denied, or why it is not suggested
	Tree  bool   `json:"tree,omitempty"` // the value is a directory: it grants all that lies in it
	Look  bool   `json:"look,omitempty"` // nothing but metadata was asked for

	Secret string `json:"secret,omitempty"`  // why the value is not to be granted lightly, such as that keys lie there
	NoTree bool   `json:"no_tree,omitempty"` // the directory around the value is such a secret
}

// A Suggestion is the smallest widening of a policy that what a run was denied asks for. What to add was chosen by the tool, as it chose
// what to try: a person has to look at it.
type Suggestion struct {
	Add []Widening
	// Not is what was denied and is not suggested: secrets, protected and hidden names, whole homes; Why has the reason.
	Not []Widening
}

// String is the suggestion as a diff that a person can read; "" if nothing was denied. What a terminal would obey is escaped.
func (s Suggestion) String() string {
	var b strings.Builder
	field := ""
	for _, w := range s.Add {
		if w.Field != field {
			field = w.Field
			fmt.Fprintf(&b, "  %s:\n", field)
		}
		fmt.Fprintf(&b, "+   %q  // %s\n", w.Value, errtext.Printable(w.Why))
	}
	for _, w := range s.Not {
		fmt.Fprintf(&b, "not suggested: %s: %s\n", errtext.Printable(w.Value), errtext.Printable(w.Why))
	}
	return b.String()
}

// Apply returns the policy with what the suggestion adds.
func (s Suggestion) Apply(p Policy) Policy {
	p = p.Clone()
	for _, w := range s.Add {
		var list *[]string
		switch w.Field {
		case "Files.Read":
			list = &p.Files.Read
		case "Files.Write":
			list = &p.Files.Write
		case "Network.Hosts":
			list = &p.Network.Hosts
		case "Network.UDP":
			list = &p.Network.UDP
		default:
			continue
		}
		if !slices.Contains(*list, w.Value) {
			*list = append(*list, w.Value)
		}
	}
	return p
}
