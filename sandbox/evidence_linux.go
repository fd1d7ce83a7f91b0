package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// report judges the run by what has been said of it so far.
func (r *run) report() *Report {
	report := &Report{Tool: r.tool(), Status: string(Promised)}
	if r.sandbox == nil {
		report.Status = "no sandbox"
		if r.broken != nil {
			report.Status += ": " + r.broken.Error()
		}
		return report
	}
	e := r.evidence(report)
	p := r.sandbox.ready.Policy
	report.Notes = slices.Clone(p.Notes)
	for _, h := range r.sandbox.ready.Plan.Holdings {
		open := slices.Contains(p.Open, h.Bound) || h.Bound == policy.BoundNetwork && p.Network.Host ||
			h.Bound == policy.BoundSyscalls && p.Syscalls.IsOff() || h.Bound == policy.BoundTime && p.Limits.WallClock == 0
		report.Bounds = append(report.Bounds, judge(h, e, open))
	}
	if line := report.Bound(policy.BoundProcesses); line != nil && report.stuck != 0 {
		line.Lost = append(line.Lost, fmt.Sprintf("process %d was killed and has not ended", report.stuck))
		line.State = Absent
	}
	r.reportEnvironment(report)
	r.reportNetwork(report)
	return report
}

// evidence fills in the report's head and returns what is known; nil: the tool
// was not executed.
func (r *run) evidence(report *Report) *runner.Evidence {
	if !r.isWatching() {
		return nil
	}
	<-r.decided
	<-r.told // init sends the rest right after it has said that the tool was held
	report.Started = r.began
	select {
	case <-r.empty:
		report.Ended, report.stuck = r.ended, r.stuck
		report.Status = "ended"
		if s := r.processState(); s != nil {
			report.Status = s.String()
		}
		if r.control.Deadline {
			report.Status = "ended at its deadline, " + (time.Duration(r.sandbox.ready.Plan.DeadlineMS) * time.Millisecond).String()
		}
		if err := r.processError(nil); err != nil {
			report.Status = "ended before its time: " + err.what()
		}
	default:
		report.Status = "running"
	}
	switch {
	case r.cutShort():
		report.Status += ", before its evidence was read"
		return &runner.Evidence{Unread: true}
	case !r.control.Held:
		report.Status = "not started"
		return nil
	}
	return runner.ReadEvidence(r.sandbox.ready.Plan, r.control, r.withheld, r.made())
}

// cutShort reports whether the run was over before its evidence was read, as
// that of a command which is cancelled at once may be. The tool may have been
// executed even if no message says so: init is killed with the stage. A stage
// that exits by itself without a message has not come so far.
func (r *run) cutShort() bool {
	if r.control.Held {
		return r.control.Evidence == nil
	}
	s := r.processState()
	return r.control.Failed == nil && !(s != nil && s.Exited())
}
