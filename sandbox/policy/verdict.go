package policy

// A Verdict is the answer to a question that a policy asks its owner, [Network.Decide]'s or [Files.Decide]'s. The zero value denies, this
// time.
type Verdict struct {
	Allow  bool   `json:"allow"`
	Reason string `json:"why,omitempty"` // why not: the tool is told it, and so is the report
	// For says how long the answer lasts, a denial like a permission: the same question is not asked again for so long.
	// Zero: [Once].
	For Lifetime `json:"for"`
}

// A Lifetime is how long a [Verdict] answers the same question.
type Lifetime uint8

// The lifetimes. Of [Run] and of [Sandbox] the first thousand answers are kept: one more lasts as [Once] does.
const (
	Once    Lifetime = iota // for what waits for the answer when it comes
	Run                     // until the run ends that has asked: a command, or the session if it is one of a session's
	Sandbox                 // for every run of the sandbox, those that go on included
)

// String is "once", "run" or "sandbox".
func (l Lifetime) String() string {
	switch l {
	case Run:
		return "run"
	case Sandbox:
		return "sandbox"
	}
	return "once"
}

// MarshalText is String, for JSON.
func (l Lifetime) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
