package callback

import (
	"sync"
	"time"
)

// mostQueued is how many events wait for an Observe.
const mostQueued = 1024

// A Queue tells a function of the policy's what happens: in order, in one goroutine, which begins with the first event. A nil
// Queue tells nothing.
type Queue[E any] struct {
	tell    func(E)
	events  chan E
	drained chan struct{}

	mu      sync.Mutex
	started bool
	stopped bool
	over    bool // End has waited long enough
	last    func(lost int) E
	lost    int
}

// NewQueue makes the queue of a function; nil: there is none.
func NewQueue[E any](tell func(E)) *Queue[E] {
	if tell == nil {
		return nil
	}
	return &Queue[E]{tell: tell, events: make(chan E, mostQueued), drained: make(chan struct{})}
}

// Add adds an event. It never waits: one that there is no room for is counted as lost.
func (q *Queue[E]) Add(e E) { q.add(e, mostQueued) }

// AddSpare adds an event of a kind that the tool makes as many of as it likes. Half of the queue is for others.
func (q *Queue[E]) AddSpare(e E) { q.add(e, mostQueued/2) }

func (q *Queue[E]) add(e E, most int) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		q.lost++
		return
	}
	if !q.started {
		q.started = true
		go q.run()
	}
	if len(q.events) >= most { // this is the one sender, so that there is room otherwise
		q.lost++
		return
	}
	q.events <- e
}

func (q *Queue[E]) run() {
	defer close(q.drained)
	for e := range q.events {
		if q.goesOn() {
			Panics(func() { q.tell(e) }) // which is ignored
		}
	}
	if q.last != nil && q.goesOn() {
		Panics(func() { q.tell(q.last(q.Lost())) })
	}
}

// goesOn reports whether the function is still to be told. An event that it is not told is lost.
func (q *Queue[E]) goesOn() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		q.lost++
	}
	return !q.over
}

// End waits until the function has been told everything, for at most patience. No call of it begins later. The last event, if
// there is one, needs no room: it is made when all others have been told, and is told if any was added.
func (q *Queue[E]) End(patience time.Duration, last func(lost int) E) {
	if q == nil {
		return
	}
	q.mu.Lock()
	if !q.stopped {
		q.last = last
		close(q.events)
		if !q.started {
			close(q.drained)
		}
	}
	q.stopped = true
	q.mu.Unlock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-q.drained:
	case <-t.C:
		q.mu.Lock()
		q.over = true
		q.mu.Unlock()
	}
}

// Lost counts the events that were not told.
func (q *Queue[E]) Lost() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}
