package sandbox

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// mostShown is how many violations the printed report lists.
const mostShown = 10

// addDenials adds what a run's network was denied, and what became of it.
func (r *Report) addDenials(s runner.Summary) {
	for _, e := range s.Gateway.Violations {
		v := runner.ViolationOf(e.Connection)
		v.Count = e.Count
		r.Violations = append(r.Violations, v)
	}
	line := r.Bound(policy.BoundNetwork)
	line.Notes = append(append(line.Notes, s.Notes...), s.Gateway.Notes...)
	if len(s.Gateway.Reached) > 0 {
		var to []string
		for _, h := range s.Gateway.Reached {
			to = append(to, fmt.Sprintf("%s (%d)", net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port))), h.Count))
		}
		if n := s.Gateway.Elsewhere; n > 0 {
			to = append(to, fmt.Sprintf("others (%d)", n))
		}
		line.Notes = append(line.Notes, "allowed, with how many connections and requests: "+strings.Join(to, ", "))
	}
	if n := s.Gateway.Beyond; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", n))
	}
	if n := s.Gateway.Failed; n > 0 {
		last := runner.ViolationOf(s.Gateway.LastFailed)
		line.Notes = append(line.Notes, fmt.Sprintf("%d of what was allowed failed; the last: %s %s: %s", n, last.Protocol, last.Target(), last.Why))
	}
	if s.Gateway.Stuck {
		line.Notes = append(line.Notes, "the proxy was closed, and connections of it have not ended: goroutines of the harness wait for a peer, a Dial or a library")
	}
	if n := s.Gateway.Unobserved; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("Observe was too slow for %d connections", n))
	}
}

// addRefusals adds what the supervisor has refused, and what Files.Decide has allowed.
func (r *Report) addRefusals(a runner.Account) {
	around := map[string]bool{} // directories with secrets
	for _, v := range a.Refused {
		if w := &v.Widening; w.Field != "" {
			dir := path.Dir(w.Value)
			if _, known := around[dir]; !known {
				around[dir] = presets.Secret(dir, true) != ""
			}
			w.NoTree = around[dir]
			if w.Secret = presets.Secret(w.Value, w.Tree); w.Secret != "" {
				v.Remedy = "best nothing, for " + w.Secret + "; else " + v.Remedy
			}
		}
		r.Violations = append(r.Violations, v)
	}
	if line := r.Bound(policy.BoundFiles); line != nil {
		if line.Notes = append(line.Notes, a.Allowed...); a.Beyond > 0 {
			line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", a.Beyond))
		}
		if len(a.Made.List) > 0 {
			line.Notes = append(line.Notes, "made in directories that the tool had made itself: "+shown(a.Made.List, a.Made.More)+"; programs outside may run what these say once they are started or opened there")
		}
		if len(a.Discarded.List) > 0 {
			line.Notes = append(line.Notes, "files written outside of the workspace were discarded with the sandbox: "+shown(a.Discarded.List, a.Discarded.More))
		}
		if len(a.Dots.List) > 0 {
			line.Notes = append(line.Notes, "new names that begin with a dot and that no list knows: "+shown(a.Dots.List, a.Dots.More)+"; look at them before you start programs there, since one may obey them")
		}
	}
}

// shown are the first of the names, in one line.
func shown(paths []string, more bool) string {
	paths = slices.Sorted(slices.Values(paths)) // other reports have the same list
	end := ""
	if more || len(paths) > mostShown {
		paths, end = paths[:min(len(paths), mostShown)], " and more"
	}
	return errtext.Printable(strings.Join(paths, ", ")) + end
}

// Suggest says what to add to the policy so that what was denied is allowed, and what of it should not be. See [policy.Suggest].
func (r *Report) Suggest() policy.Suggestion { return policy.Suggest(r.Violations) }

// printViolations prints the first of them, those that say the same as one: clients
// try again.
func (r *Report) printViolations(b *strings.Builder) {
	times, left := map[string]int{}, 0
	var lines []string
	for _, v := range r.Violations {
		line := v.String()
		n := max(v.Count, 1)
		if left += n; times[line] == 0 {
			lines = append(lines, line)
		}
		times[line] += n
	}
	for i, line := range lines {
		n := times[line]
		switch {
		case i == mostShown:
			fmt.Fprintf(b, "  and %d more were denied\n", left)
			return
		case n > 1:
			fmt.Fprintf(b, "  denied %d times: %s\n", n, line)
		default:
			fmt.Fprintf(b, "  denied: %s\n", line)
		}
		left -= n
	}
}

// A Violation is something that a run was denied, as its [Report] lists it: by the rules of its network, or by the
// supervisor, which refuses names and calls. Its String is one sentence, for a person or a model.
type Violation = policy.Violation
