package sandbox

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// passes says what the harness serves of the run's network, and what has passed.
func (r *run) passes() (proxied, captured string) {
	o := r.out
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
	o := r.out
	if o == nil {
		return
	}
	var summary egress.Summary
	if o.gateway != nil {
		summary = o.gateway.Summary()
	}
	for _, e := range summary.Violations {
		report.Violations = append(report.Violations, violationOf(e))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	report.Violations = append(report.Violations, o.denied...)
	line := report.Bound(BoundNetwork)
	line.Notes = append(line.Notes, o.notes...)
	if n := summary.Beyond + o.beyond; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", n))
	}
	if n := summary.Unobserved; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("Observe was too slow for %d connections", n))
	}
}
