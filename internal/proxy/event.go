package proxy

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/sandbox/policy"

	"golang.org/x/net/http/httpguts"
)

const (
	maxDenialKinds = 100
	maxReached     = 100
	maxNotes       = 20
	maxEventText   = 1 << 10 // bytes of one text
)

// An eventLog tells events to Observe and keeps the summary.
type eventLog struct {
	mu      sync.Mutex
	sum     Summary
	kinds   map[denialKey]int       // where in sum.Violations
	reached map[Reached]int         // where in sum.Reached; their Count is 0
	denied  func(policy.Connection) // told the first of each kind; or nil
	queue   *callback.Queue[policy.Connection]
}

// add notes an event. It never waits.
func (j *eventLog) add(e policy.Connection) { j.close(e, nil) }

// close notes an event, and the error of what was allowed and did not come about. A
// client that has hung up, and the run's end, are no failures. Whatever a peer or the
// tool has had a part in becomes printable here.
func (j *eventLog) close(e policy.Connection, failed error) {
	e = PrintableEvent(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if failed != nil && !errors.Is(failed, context.Canceled) && !errors.Is(failed, net.ErrClosed) && !errors.Is(failed, ErrClosed) {
		j.sum.Failed++
		j.sum.LastFailed = e
	}
	if e.Allowed {
		j.sum.Allowed++
		j.reach(Reached{Host: e.Host, Port: e.Port})
		j.queue.Add(e)
	} else if j.sum.Denied++; j.count(e) {
		j.queue.AddSpare(e)
	}
}

// reach counts an allowed connection by its host and port.
func (j *eventLog) reach(to Reached) {
	i, known := j.reached[to]
	switch {
	case known:
		j.sum.Reached[i].Count++
	case len(j.sum.Reached) == maxReached:
		j.sum.Elsewhere++
	default:
		j.reached[to] = len(j.sum.Reached)
		to.Count = 1
		j.sum.Reached = append(j.sum.Reached, to)
	}
}

// note adds a text for the report, once.
func (j *eventLog) note(text string) {
	text = clip(errtext.Printable(text))
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.sum.Notes) < maxNotes && !slices.Contains(j.sum.Notes, text) {
		j.sum.Notes = append(j.sum.Notes, text)
	}
}

// A denialKey is what the denials that are kept as one have in common.
type denialKey struct {
	protocol, host string
	port           uint16
	rule, reason   string
}

func denialKeyOf(e policy.Connection) denialKey {
	return denialKey{e.Protocol, e.Host, e.Port, e.Rule, e.Reason}
}

// count keeps the first denial of each kind, with how many there were, and in the last place
// the last kind: no number of others hides what a tool wanted in the end. It reports whether the kind is new.
func (j *eventLog) count(e policy.Connection) bool {
	if i, known := j.kinds[denialKeyOf(e)]; known {
		j.sum.Violations[i].Count++
		return false
	}
	if n := len(j.sum.Violations); n == maxDenialKinds {
		last := j.sum.Violations[n-1]
		j.sum.Beyond += last.Count
		delete(j.kinds, denialKeyOf(last.Connection))
		j.sum.Violations = j.sum.Violations[:n-1]
	}
	j.kinds[denialKeyOf(e)] = len(j.sum.Violations)
	j.sum.Violations = append(j.sum.Violations, Denied{e, 1})
	if j.denied != nil {
		j.denied(e)
	}
	return true
}

// tellRepeated tells Observe how many denials there were of each kind after the first.
func (j *eventLog) tellRepeated() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range j.sum.Violations {
		if e := d.Connection; d.Count > 1 {
			e.Again = d.Count - 1
			j.queue.Add(e)
		}
	}
}

// stuck notes that the proxy was closed and has not ended.
func (j *eventLog) stuck() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sum.Stuck = true
}

func (j *eventLog) summary() Summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sum
	s.Violations, s.Reached, s.Notes = slices.Clone(s.Violations), slices.Clone(s.Reached), slices.Clone(s.Notes)
	s.Unobserved = j.queue.Lost()
	return s
}

// finish completes an event and notes it. The error of a denial makes it one.
func (j *eventLog) finish(e policy.Connection, err error) {
	e.Duration = time.Since(e.Time)
	e.Allowed = err == nil
	var failed error
	if r := refusalOf(err); r != nil {
		e.Reason = r.Why
		if r.Rule != "" || r.Limit == "" { // a limit's entry is the one that allowed it
			e.Rule = r.Rule
		}
	} else if err != nil {
		e.Allowed, e.Err = true, err.Error()
		failed = err
	}
	j.close(e, failed)
}

// newEvent is the event of a target, to be finished.
func newEvent(t Target) policy.Connection {
	e := policy.Connection{Time: time.Now(), Protocol: t.Protocol, Port: t.Port}
	if !t.Host.IsZero() {
		e.Host = t.Host.String()
	}
	return e
}

// clip shortens what may be as long as a peer likes: events are kept.
func clip(s string) string {
	if len(s) > maxEventText {
		return s[:maxEventText] + "..."
	}
	return s
}

// PrintableEvent is an event as it may be told and kept. A method is one only if it is a token
// (RFC 9110, 9.1).
func PrintableEvent(e policy.Connection) policy.Connection {
	for _, s := range []*string{&e.Protocol, &e.Host, &e.Address, &e.Method, &e.Path, &e.Rule, &e.Reason, &e.Err} {
		*s = clip(errtext.Printable(clip(*s)))
	}
	if !httpguts.ValidHeaderFieldName(e.Method) {
		e.Method = ""
	}
	return e
}

// printableRequest is a request as Decide may be shown it.
func printableRequest(r policy.Request) policy.Request {
	r.Protocol, r.Method, r.Path = errtext.Printable(r.Protocol), errtext.Printable(r.Method), errtext.Printable(r.Path)
	return r
}
