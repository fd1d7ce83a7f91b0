package sandbox

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A State says how well a bound or a mechanism held.
type State string

// The states.
const (
	Promised State = "promised" // the tool has not been executed yet
	Held     State = "held"     // every mechanism that was promised is in force
	Partly   State = "partly"   // as Held, for a part of the bound: Unbounded says what the policy leaves without a limit
	Weaker   State = "weaker"   // something of it is missing; Lost says what
	Absent   State = "absent"   // nothing holds it
	Open     State = "open"     // the policy does not want it
	Unread   State = "unread"   // the run was over before its evidence was read: nothing shows that it held, nor that it did not
)

// A Report says, bound by bound, what was promised for one run, which mechanisms hold it, and on what evidence: what
// the kernel said of the tool's process once it had been executed, not what was intended. It does not say what the
// tool did, but for what Violations lists.
type Report struct {
	Tool    string        `json:"tool"`
	Started time.Time     `json:"started,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
	Status  string        `json:"status"` // "promised", "running", "exit status 1", "ended at its deadline, 1m0s" ...
	Bounds  []BoundReport `json:"bounds"`
	Notes   []policy.Note `json:"notes,omitempty"` // the policy's; String prints those that say why
	// Denials are what the tool was refused, on systems that keep a log of it, if it
	// can be read, once the run has ended.
	Denials []Denial `json:"denials,omitempty"`
	// Violations are what the tool was denied: by the network's rules the first hundred, by the supervisor the first
	// 128 (docs/denials.md). Those that are the same are one, with a count.
	Violations []Violation `json:"violations,omitempty"`
}

// A BoundReport is one line of a report.
type BoundReport struct {
	Bound      Bound             `json:"bound"`
	State      State             `json:"state"`
	Mechanisms []MechanismReport `json:"mechanisms,omitempty"`
	Unbounded  []string          `json:"unbounded,omitempty"` // what of resources nothing bounds
	Lost       []string          `json:"lost,omitempty"`      // what of the bound does not hold, and why
	Notes      []string          `json:"notes,omitempty"`     // what else should be known of it
}

// A MechanismReport is one mechanism of a bound and the evidence for it.
type MechanismReport struct {
	Mechanism string `json:"mechanism"`
	Held      bool   `json:"held"`
	Evidence  string `json:"evidence"`
}

// A Denial is something that the tool tried and the system refused, as the
// system's log has it. Only macOS has such a log. What a terminal would obey, a
// line's end too, is escaped.
type Denial struct {
	Time      time.Time `json:"time,omitzero"`
	Process   string    `json:"process"`
	PID       int       `json:"pid"`
	Operation string    `json:"operation"` // such as "file-read-data"
	Target    string    `json:"target,omitempty"`
	Times     int       `json:"times"` // how often in a row
}

// Bound returns the line of one bound; nil: there is none.
func (r *Report) Bound(b Bound) *BoundReport {
	for i := range r.Bounds {
		if r.Bounds[i].Bound == b {
			return &r.Bounds[i]
		}
	}
	return nil
}

// Held reports whether every bound that the policy wants is held, as far as the policy bounds it.
func (r *Report) Held() bool {
	for _, b := range r.Bounds {
		if b.State != Held && b.State != Partly && b.State != Open {
			return false
		}
	}
	return len(r.Bounds) > 0
}

// String prints the report as a table.
func (r *Report) String() string {
	var b strings.Builder
	shown := errtext.Printable // whatever the tool or a peer has had a part in
	fmt.Fprintf(&b, "%s: %s\n", shown(r.Tool), shown(r.Status))
	w, said := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0), errtext.Repeated{}
	for _, line := range r.Bounds {
		state := string(line.State)
		if line.State != Held && line.State != Promised {
			state = strings.ToUpper(state)
		}
		var by []string
		for _, m := range line.Mechanisms {
			word := m.Mechanism
			if !m.Held && line.State != Promised && line.State != Unread {
				word = "NOT " + word
			}
			if m.Evidence != "" {
				word += " (" + m.Evidence + ")"
			}
			by = append(by, word)
		}
		if line.State == Open {
			by = []string{openWords(line.Bound)}
		}
		what := strings.Join(by, ", ")
		if len(line.Unbounded) > 0 {
			what += "; not bounded: " + strings.Join(line.Unbounded, ", ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", line.Bound, state, shown(what))
		for _, l := range line.Lost {
			fmt.Fprintf(w, "  \t\tnot held: %s\n", said.Shorten(shown(l)))
		}
		for _, n := range line.Notes {
			fmt.Fprintf(w, "  \t\t%s\n", shown(n))
		}
	}
	w.Flush()
	for _, n := range r.Notes {
		if n.Why != "" {
			fmt.Fprintf(&b, "  note: %s\n", shown(n.String()))
		}
	}
	for _, d := range r.Denials {
		fmt.Fprintf(&b, "  denied %d times: %s (%d) %s %s\n", d.Times, shown(d.Process), d.PID, shown(d.Operation), shown(d.Target))
	}
	r.printViolations(&b)
	return b.String()
}

// openWords says of an open bound by what it is so.
func openWords(b Bound) string {
	if b == policy.BoundTime {
		return "the policy sets no deadline (Limits.WallClock)"
	}
	return "the policy does not bound it"
}

// JSON returns the report as JSON, indented.
func (r *Report) JSON() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// ReportOf returns the report of a command that [Sandbox.Wrap] has put into a
// sandbox, or of a Cmd's embedded exec.Cmd; nil: it is in none. On macOS it is always nil.
func ReportOf(cmd *exec.Cmd) *Report {
	if r := runner.Of(cmd); r != nil {
		return reportOf(r.Account())
	}
	return nil
}

// reportOf judges a run by what is known of it.
func reportOf(a runner.Account) *Report {
	r := &Report{Tool: a.Tool, Status: a.Status, Started: a.Started, Ended: a.Ended}
	if a.Sandbox == nil {
		return r
	}
	for _, d := range a.Denials {
		r.Denials = append(r.Denials, Denial(d))
	}
	p := a.Sandbox.Policy
	if r.Notes = slices.Clone(p.Notes); a.Unprepared != "" {
		r.Notes = append(r.Notes, policy.Note{At: "Prepare", Rule: "started cold", Class: "slower", Why: a.Unprepared})
	}
	for _, h := range a.Sandbox.Plan.Holdings {
		open := slices.Contains(p.Open, h.Bound) || h.Bound == policy.BoundNetwork && p.Network.Host ||
			h.Bound == policy.BoundSyscalls && p.Syscalls.IsOff() || h.Bound == policy.BoundTime && p.Limits.WallClock == 0
		r.Bounds = append(r.Bounds, judge(h, a.Evidence, open))
	}
	if line := r.Bound(policy.BoundResources); line != nil && line.State != Open {
		line.Unbounded = unbounded(p.Limits.Rlimits, a.Sandbox.Plan.Steps)
		if line.State == Held {
			line.State = Partly
		}
	}
	if line := r.Bound(policy.BoundProcesses); line != nil && a.Stuck != 0 {
		line.Lost = append(line.Lost, fmt.Sprintf("process %d was killed and has not ended", a.Stuck))
		line.State = Absent
	}
	if line := r.Bound(policy.BoundProcesses); line != nil && line.State != Open && a.Shared && a.Sandbox.Plan.Apart == nil {
		line.Lost = append(line.Lost, "commands of the session can read each other's memory (there is no Landlock here)")
		if line.State == Held {
			line.State = Weaker
		}
	}
	if line := r.Bound(policy.BoundEnvironment); len(a.Secrets) > 0 && line.State != Open {
		line.Lost = append(line.Lost, runner.SecretsPassed(a.Secrets))
		if line.State == Held {
			line.State = Weaker
		}
	}
	if line := r.Bound(policy.BoundNetwork); line != nil && (line.State == Held || line.State == Promised) && !p.Network.Proxied() &&
		(a.Network == nil || !slices.ContainsFunc(a.Network.Notes, func(n string) bool { return strings.Contains(n, "by Session.SetHosts") })) {
		line.Notes = append(line.Notes, "no host can be reached: Network.Hosts names none")
	}
	if line := r.Bound(policy.BoundTime); line != nil && line.State == Open && !slices.Contains(p.Open, policy.BoundTime) && !a.Deadline.IsZero() {
		line.bindToContext(a)
	}
	if a.Network != nil {
		r.addDenials(*a.Network)
	}
	r.addRefusals(a)
	return r
}

// unbounded lists the resources without a limit for all processes of a run together: rlimits but NProc count each process apart
// (getrlimit(2)).
func unbounded(l rlimit.Limits, steps []plan.Step) (list []string) {
	bounds := func(limits ...*rlimit.Limit) bool {
		return slices.ContainsFunc(limits, func(l *rlimit.Limit) bool { return l != nil && l.Hard < rlimit.Inherited })
	}
	for _, r := range [...]struct {
		of   string
		each bool
		that string
	}{{"memory", bounds(l.AS, l.Data), "process"}, {"CPU time", bounds(l.CPU), "process"}, {"disk", bounds(l.FSize), "file"}} {
		if r.each {
			r.of += " as a whole (each " + r.that + "'s is)"
		}
		list = append(list, r.of)
	}
	tasks := len(steps) == 0 // macOS
	for _, s := range steps {
		switch op := s.Do.(type) {
		case plan.SetLimits:
			tasks = tasks || slices.ContainsFunc(op.Settings, func(s rlimit.Setting) bool { return s.Resource == rlimit.NProc && s.Hard != rlimit.Unlimited })
		case plan.Proc:
			tasks = tasks || op.Quotas.PIDs > 0
		case plan.OwnProc:
			tasks = tasks || op.Quotas.PIDs > 0
		}
	}
	if !tasks {
		list = append(list, "processes")
	}
	return list
}

// complete adds to the end of a run, as it is told Policy.Observe, what the report says, and returns what the supervisor
// has refused.
func complete(run interface{ Account() runner.Account }, e *policy.Ended) []Violation {
	a := run.Account()
	for _, line := range reportOf(a).Bounds {
		if line.State != Held && line.State != Partly && line.State != Open && !slices.Contains(e.Unheld, line.Bound) {
			e.Unheld = append(e.Unheld, line.Bound)
		}
	}
	e.Duration, e.Denied = time.Since(a.Started), int(a.Beyond)
	for _, v := range a.Refused {
		e.Denied += v.Count
	}
	if a.Network != nil && !a.Shared {
		s := a.Network.Gateway
		e.Denied, e.Sent, e.Received = e.Denied+s.Denied, s.Sent, s.Received
	}
	return a.Refused
}

// bindToContext says that the harness ends the run at its context's deadline: os/exec calls Cancel, which
// by default kills everything inside.
func (b *BoundReport) bindToContext(a runner.Account) {
	b.State = Promised
	m := MechanismReport{Mechanism: "context"}
	if a.Evidence != nil {
		b.State, m.Held, m.Evidence = Held, true, "Cancel is called in the harness at "+a.Deadline.Format(time.RFC3339)
	}
	b.Mechanisms = []MechanismReport{m}
}

// judge makes the line of one bound: what was promised against the evidence.
func judge(h plan.Holding, e *runner.Evidence, open bool) BoundReport {
	line := BoundReport{Bound: h.Bound, Notes: slices.Clone(h.Notes)}
	held := 0
	for _, m := range h.By {
		r := MechanismReport{Mechanism: string(m)}
		switch {
		case e == nil:
		case e.Unread:
			r.Evidence = "not read"
		default:
			r.Held, r.Evidence = e.Holds(m)
		}
		if r.Held {
			held++
		}
		line.Mechanisms = append(line.Mechanisms, r)
	}
	absent := len(h.By) == 0
	for _, l := range h.Lost {
		line.Lost = append(line.Lost, l.String())
		absent = absent || l.Absent
	}
	switch {
	case open:
		line.State = Open
	case e == nil && !absent:
		line.State = Promised
	case absent:
		line.State = Absent
	case e.Unread:
		line.State = Unread
	case held == 0:
		line.State = Absent
	case held < len(h.By) || len(h.Lost) > 0:
		line.State = Weaker
	default:
		line.State = Held
	}
	return line
}
