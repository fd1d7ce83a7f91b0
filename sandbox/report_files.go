package sandbox

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// addRefusals adds what the supervisor has refused.
func (r *Report) addRefusals(list []runner.Refused, beyond uint64) {
	for _, d := range list {
		v := Violation{
			Time: d.Time, Bound: d.Bound, Operation: d.Operation, Path: errtext.Printable(d.Path), To: errtext.Printable(d.To),
			Rule: errtext.Printable(d.Rule), Why: d.Why, Remedy: errtext.Printable(d.Remedy), Count: d.Count,
			PID: d.PID, Claimed: errtext.Printable(d.Command),
		}
		r.Violations = append(r.Violations, v)
	}
	if line := r.Bound(policy.BoundFiles); beyond > 0 && line != nil {
		line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", beyond))
	}
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
		return errtext.Printable(fmt.Sprintf("%s (rule %q; to allow it: %s)", what, v.Rule, v.Remedy))
	}
	return errtext.Printable(fmt.Sprintf("%s (to allow it: %s)", what, v.Remedy))
}
