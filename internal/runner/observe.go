package runner

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An observer tells Policy.Observe of one run. The zero value tells nothing.
type observer struct {
	queue   *callback.Queue[policy.Event] // nil: there is no Observe
	run     uint64
	sandbox uint64
	session uint64 // the run of the session; 0: it is of none
}

// numbers counts the runs and the sandboxes that are observed.
var numbers struct{ runs, sandboxes atomic.Uint64 }

// observePatience is how long the end of a run waits for an Observe.
const observePatience = 30 * time.Second

// newObserver makes a run's observer. number is that of its sandbox, which has none yet if it is 0.
func newObserver(observe func(policy.Event), number *atomic.Uint64) observer {
	if number.Load() == 0 {
		number.CompareAndSwap(0, numbers.sandboxes.Add(1))
	}
	return observer{queue: callback.NewQueue(observe), run: numbers.runs.Add(1), sandbox: number.Load()}
}

func (o *observer) numbered(e policy.Event) policy.Event {
	e.Run, e.Sandbox, e.Session = o.run, o.sandbox, o.session
	return e
}

func (o *observer) tell(e policy.Event) { o.queue.Add(o.numbered(e)) }

func (o *observer) denied(v policy.Violation) {
	o.queue.AddSpare(o.numbered(policy.Event{Kind: policy.EventDenied, Time: v.Time, Denied: &v}))
}

// asked tells of a question to Decide, or, with a verdict, of its answer.
func (o *observer) asked(r policy.Request, v *policy.Verdict) {
	e := policy.Event{Kind: policy.EventAsked, Time: time.Now(), Asked: &r, Answer: v}
	if v != nil {
		e.Kind = policy.EventAnswered
	}
	o.tell(e)
}

// askedFile is asked for Files.Decide.
func (o *observer) askedFile(r policy.FileRequest, v *policy.Verdict) {
	e := policy.Event{Kind: policy.EventAsked, Time: time.Now(), File: &r, Answer: v}
	if v != nil {
		e.Kind = policy.EventAnswered
	}
	o.tell(e)
}

// started tells of the run's beginning, before anything else of it can be told.
func (o *observer) started(at time.Time, s policy.Started) {
	o.tell(policy.Event{Kind: policy.EventStarted, Time: at, Started: &s})
}

// ended tells of the run's end. It returns when everything was told, or Observe has had its time.
func (o *observer) ended(at time.Time, e policy.Ended) {
	o.queue.End(observePatience, func(lost int) policy.Event {
		e.Lost = lost
		return o.numbered(policy.Event{Kind: policy.EventEnded, Time: at, Ended: &e})
	})
}
