package sandbox

import (
	"context"
	"os/exec"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// report judges the run by what can be known of it.
func (r *run) report() *Report {
	report := &Report{Tool: r.tool(), Status: string(Promised)}
	if r.sandbox == nil {
		report.Status = "no sandbox"
		if r.broken != nil {
			report.Status += ": " + r.broken.Error()
		}
		return report
	}
	started := r.isWatching()
	if started {
		<-r.decided
		report.Started, report.Status = r.began, "running"
		select {
		case <-r.empty:
			report.Ended, report.Status = r.ended, "ended"
			if s := r.processState(); s != nil {
				report.Status = s.String()
			}
			report.Denials = r.denials()
		default:
		}
		if r.stageErr != nil || r.trialErr != nil {
			report.Status, started = "not started", false
		}
	}
	p := r.sandbox.ready.Policy
	report.Notes = slices.Clone(p.Notes)
	proxied, _ := r.served()
	for _, h := range r.sandbox.ready.Plan.Holdings {
		open := slices.Contains(p.Open, h.Bound) || h.Bound == policy.BoundNetwork && p.Network.Host ||
			h.Bound == policy.BoundSyscalls && p.Syscalls.IsOff() || h.Bound == policy.BoundTime && p.Limits.WallClock == 0
		report.Bounds = append(report.Bounds, judgeProfile(h, open, started, func(mechanism string) string {
			return profileEvidence(mechanism, r.sandbox.ready.Limits, r.withheld, r.sandbox.ready.Plan.DeadlineMS, proxied)
		}))
	}
	r.reportEnvironment(report)
	r.reportNetwork(report)
	return report
}

// denials reads the system's log, once. Only an administrator's harness can.
func (r *run) denials() []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		text, _ := exec.CommandContext(ctx, "/usr/bin/log", logArgs(r.tag, r.began)...).Output()
		list := parseDenials(text, r.tag)
		r.denied = &list
	}
	return *r.denied
}
