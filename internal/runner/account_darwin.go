package runner

import (
	"context"
	"os/exec"
	"time"
)

// Account returns what can be known of the run so far. It may be called while another goroutine is in one
// of the run's methods.
func (r *Run) Account() Account {
	a := r.account()
	if r.isWatching() {
		<-r.decided
		r.follow(&a)
	}
	if n := r.made(); n != nil {
		s := n.Summary()
		a.Network = &s
	}
	return a
}

// follow fills in what is known of a run whose stage has been started.
func (r *Run) follow(a *Account) {
	a.Started, a.Secrets, a.Status = r.began, r.secrets, "running"
	select {
	case <-r.empty:
		a.Ended, a.Status = r.ended, "ended"
		if s := r.processState(); s != nil {
			a.Status = s.String()
		}
		a.Denials = r.denials()
	default:
	}
	if r.stageErr != nil || r.trialErr != nil {
		a.Status = "not started"
		return
	}
	proxied := ""
	if n := r.made(); n != nil {
		proxied, _ = n.Served()
	}
	a.Evidence = ProfileEvidence(r.sandbox.Limits, r.withheld, r.sandbox.Plan.DeadlineMS, proxied)
}

// denials reads the system's log, once. Only an administrator's harness can.
func (r *Run) denials() []Denial {
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
