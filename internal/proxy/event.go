package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	queuedEvents   = 1024
	keptViolations = 100 // kinds of them
)

// A journal tells events to Observe and keeps the summary.
type journal struct {
	mu      sync.Mutex
	sum     Summary
	kinds   map[denial]int // where in sum.Violations
	queue   chan Event     // nil: nobody is told
	told    chan struct{}
	begun   bool
	stopped bool
	observe func(Event)
}

func newJournal(observe func(Event)) *journal {
	j := &journal{told: make(chan struct{}), kinds: map[denial]int{}}
	if observe == nil {
		close(j.told)
		return j
	}
	j.queue, j.observe = make(chan Event, queuedEvents), observe
	return j
}

// begin starts to tell Observe, with the first event: a gateway that is made and
// never used leaves no goroutine.
func (j *journal) begin() {
	if j.begun {
		return
	}
	j.begun = true
	go func() {
		defer close(j.told)
		for e := range j.queue {
			tell(j.observe, e)
		}
	}()
}

// tell calls Observe; what panics there does not end the harness's traffic.
func tell(observe func(Event), e Event) {
	defer func() { _ = recover() }()
	observe(e)
}

// add notes an event. It never waits.
func (j *journal) add(e Event) { j.close(e, nil) }

// close notes an event, and the error of what was allowed and did not come about. A
// client that has hung up, and the run's end, are no failures. Whatever a peer or the
// tool has had a part in becomes printable here.
func (j *journal) close(e Event, failed error) {
	e = e.Printable()
	j.mu.Lock()
	defer j.mu.Unlock()
	if failed != nil && !errors.Is(failed, context.Canceled) && !errors.Is(failed, net.ErrClosed) && !errors.Is(failed, ErrClosed) {
		j.sum.Failed++
		j.sum.LastFailed = e
	}
	switch {
	case e.Allowed:
		j.sum.Allowed++
	default:
		j.sum.Denied++
		j.count(e)
	}
	if j.queue == nil {
		return
	}
	if j.stopped {
		j.sum.Unobserved++
		return
	}
	j.begin()
	select {
	case j.queue <- e:
	default:
		j.sum.Unobserved++
	}
}

// A denial is what the denials that are kept as one have in common.
type denial struct {
	protocol, host string
	port           uint16
	rule, reason   string
}

func denialOf(e Event) denial { return denial{e.Protocol, e.Host, e.Port, e.Rule, e.Reason} }

// count keeps the first denial of each kind, with how many there were, and in the last place
// the last kind: no number of others hides what a tool wanted in the end.
func (j *journal) count(e Event) {
	if i, known := j.kinds[denialOf(e)]; known {
		j.sum.Violations[i].Count++
		return
	}
	if n := len(j.sum.Violations); n == keptViolations {
		last := j.sum.Violations[n-1]
		j.sum.Beyond += last.Count
		delete(j.kinds, denialOf(last.Event))
		j.sum.Violations = j.sum.Violations[:n-1]
	}
	j.kinds[denialOf(e)] = len(j.sum.Violations)
	j.sum.Violations = append(j.sum.Violations, Denied{e, 1})
}

// end lets Observe hear what is queued, for as long as patience lasts.
func (j *journal) end(patience time.Duration) {
	j.mu.Lock()
	if !j.stopped && j.queue != nil {
		close(j.queue)
		if !j.begun {
			close(j.told)
		}
	}
	j.stopped = true
	j.mu.Unlock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-j.told:
	case <-t.C:
	}
}

// stuck notes that the gateway was closed and has not ended.
func (j *journal) stuck() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sum.Stuck = true
}

func (j *journal) summary() Summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sum
	s.Violations = append([]Denied(nil), s.Violations...)
	return s
}

// finish completes an event and notes it. The error of a denial makes it one.
func (j *journal) finish(e Event, err error) {
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

// begin is the event of a target, to be finished.
func begin(t Target) Event {
	e := Event{Time: time.Now(), Protocol: t.Protocol, Port: t.Port}
	if !t.Host.IsZero() {
		e.Host = t.Host.String()
	}
	return e
}
