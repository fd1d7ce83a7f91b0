package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// A Violation is something that a run was denied, as its sandbox.Report lists it: by the rules of its network, an agent's
// filter and a capture included, or, with an Operation, by the supervisor, which refuses names and calls.
type Violation struct {
	Time     time.Time `json:"time"`
	Bound    Bound     `json:"bound"`
	Protocol string    `json:"protocol,omitempty"` // "http", "https", "connect", "socks", with a capture "tcp", "udp" ...
	Host     string    `json:"host,omitempty"`
	Address  string    `json:"address,omitempty"` // if that is what was denied
	Port     uint16    `json:"port,omitempty"`
	Method   string    `json:"method,omitempty"`
	// Operation is what a process wanted, such as "open for writing", if the supervisor has refused it. Path is what it
	// was about, as the kernel names it: a file, or an address. To is the second path.
	Operation string `json:"operation,omitempty"`
	Path      string `json:"path,omitempty"` // without an Operation, that of a request
	To        string `json:"to,omitempty"`
	PID       int    `json:"pid,omitempty"`     // of the process, as it is numbered inside
	Claimed   string `json:"claimed,omitempty"` // its command line or name: the tool's own text, which can say anything

	Rule string `json:"rule,omitempty"` // which rule decided, or "Decide", "Decide, for the run" ...; "": no rule allows it
	Why  string `json:"why"`
	// Remedy is what in the policy would allow it, or that nothing does. It is for a person:
	// the tool chose the host, and a program that follows remedies has no policy.
	Remedy string `json:"remedy"`
	// Widening is that remedy as data, where it is one value of a list; see [Suggest].
	Widening Widening `json:"widening,omitzero"`
	// Count is how many denials there were by this rule and for this reason, of this host
	// and port by this protocol, or of this operation and path; the other fields tell of the first of them.
	Count int `json:"count"`
}

// String is one line: what was denied, why, and what would allow it. Whatever a
// terminal would obey is escaped.
func (v Violation) String() string {
	if v.Operation != "" {
		return v.refusal()
	}
	what := v.Protocol + " " + v.Target()
	if v.Method != "" {
		what += " " + v.Method + " " + v.Path
	}
	if v.Rule != "" {
		return errtext.Printable(fmt.Sprintf("%s: %s (rule %q; %s)", what, v.Why, v.Rule, v.allowedBy()))
	}
	return errtext.Printable(fmt.Sprintf("%s: %s (%s)", what, v.Why, v.allowedBy()))
}

// Error is String: a denial of sandbox.Session's Files is an error that wraps a *Violation.
func (v *Violation) Error() string { return v.String() }

// allowedBy is the remedy as a part of a sentence.
func (v Violation) allowedBy() string {
	if instead, none := strings.CutPrefix(v.Remedy, "nothing does"); none {
		return "nothing in the policy allows it" + instead
	}
	return "to allow it: " + v.Remedy
}

// Target is the host as an entry of [Network] Hosts has it.
func (v Violation) Target() string {
	if v.Port == 0 {
		return v.Host
	}
	host := v.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(v.Port))
}

// refusal is String for what the supervisor has refused.
func (v Violation) refusal() string {
	what := v.Path
	if v.To != "" {
		what += " -> " + v.To
	}
	if what != "" {
		what += ": "
	}
	what += v.Operation + " was refused: " + v.Why
	if v.Rule != "" {
		return errtext.Printable(fmt.Sprintf("%s (rule %q; %s)", what, v.Rule, v.allowedBy()))
	}
	return errtext.Printable(fmt.Sprintf("%s (%s)", what, v.allowedBy()))
}
