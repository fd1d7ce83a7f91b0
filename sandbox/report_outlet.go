package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// passes says what the harness serves of the run's network, and what has passed.
func (r *run) passes() (proxied, captured string) {
	o := r.made()
	if o == nil {
		return "", ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var served []string
	for _, s := range o.served {
		if strings.HasPrefix(s, captureWord) {
			captured = s
			continue
		}
		served = append(served, s)
	}
	if len(served) == 0 {
		return "", captured
	}
	proxied = strings.Join(served, ", ")
	if o.gateway != nil {
		s := o.gateway.Summary()
		proxied += fmt.Sprintf("; %d allowed, %d denied, %d bytes sent, %d received", s.Allowed, s.Denied, s.Sent, s.Received)
	}
	return proxied, captured
}

// reportNetwork adds what the run was denied, and what became of its outlet.
func (r *run) reportNetwork(report *Report) {
	if line := report.Bound(policy.BoundNetwork); (line.State == Held || line.State == Promised) && !r.sandbox.policy.Network.Proxied() {
		line.Notes = append(line.Notes, "no host can be reached: Network.Hosts names none")
	}
	o := r.made()
	if o == nil {
		return
	}
	var summary proxy.Summary
	if o.gateway != nil {
		summary = o.gateway.Summary()
	}
	for _, e := range summary.Violations {
		v := violationOf(e.Event)
		v.Count = e.Count
		report.Violations = append(report.Violations, v)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	report.Violations = append(report.Violations, o.denied...)
	line := report.Bound(policy.BoundNetwork)
	line.Notes = append(line.Notes, o.notes...)
	if n := summary.Beyond + o.beyond; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", n))
	}
	if n := summary.Failed; n > 0 {
		last := violationOf(summary.LastFailed)
		line.Notes = append(line.Notes, fmt.Sprintf("%d of what was allowed failed; the last: %s %s: %s", n, last.Protocol, last.target(), last.Why))
	}
	if summary.Stuck {
		line.Notes = append(line.Notes, "the proxy was closed, and connections of it have not ended: goroutines of the harness wait for a peer, a Dial or a library")
	}
	if n := summary.Unobserved; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("Observe was too slow for %d connections", n))
	}
}

// noteOwnEnv notes that an Env of the caller's does not lead to the proxies: it is
// what os/exec's users write, and the tool then says no more than that it finds no host.
func (r *run) noteOwnEnv() {
	o := r.made()
	r.mu.Lock()
	env := r.saved.env
	r.mu.Unlock()
	if env == nil || o == nil || !o.wiring.Proxied || r.sandbox.plan.Uses(plan.Capture) {
		return
	}
	leads := func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy") && strings.Contains(value, o.http.String())
	}
	if !slices.ContainsFunc(env, leads) {
		o.note("the command's own Env does not name the proxies, without which most programs reach nothing: add Cmd.NetworkEnviron to it")
	}
}
