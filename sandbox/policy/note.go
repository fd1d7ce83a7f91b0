package policy

// A Note says how exactly a policy carries out one rule of the text that it was
// made from.
type Note struct {
	At    string `json:"at"`    // where the rule stands: "agent.sb:12"
	Rule  string `json:"rule"`  // the rule itself
	Class string `json:"class"` // a word, such as "exact"
	Why   string `json:"why,omitempty"`
}

// String returns the note as one line.
func (n Note) String() string {
	s := n.At + " " + n.Rule + ": " + n.Class
	if n.Why != "" {
		s += ": " + n.Why
	}
	return s
}
