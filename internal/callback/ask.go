package callback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ErrClosed is why a question is denied that is asked when the run has ended.
var ErrClosed = errors.New("the sandbox has ended")

// An Asker puts one run's questions to the policy's owner. Its fields are set before the first question.
type Asker struct {
	Ctx      context.Context // of the run
	Spawn    func(func()) bool
	Patience time.Duration // for the answer, and before that for the turn
	Most     int           // calls that have not returned
	Memory   *Memory       // of the sandbox
	Run      *Memory       // the verdicts for the run, which several askers may share

	calls Limit
	mu    sync.Mutex
	since uint64 // the Memory's time: what was asked before is forgotten
	open  map[key]*asked
}

// A Question is what one of the policy's functions is asked.
type Question struct {
	About  string // what questions are asked about one after another: a host
	Same   string // what equal questions have in common, and no others
	Thing  string // what a no that lasts is about, for all questions about it; "": the question alone
	Decide func(context.Context) policy.Verdict
	// Asked is called before Decide, and Answered with the outcome of that call, even if no client waits for it any more.
	// Either may be nil.
	Asked    func()
	Answered func(Answer)
}

// An Answer is the verdict on a Question.
type Answer struct {
	policy.Verdict
	Remembered bool // it is that of an earlier question, and lasts for the run or the sandbox
	Forgotten  bool // Forget was called before it came: it is none
}

// Rule is how reports name what has decided.
func (a Answer) Rule() string {
	switch {
	case a.Remembered && a.For == policy.Sandbox:
		return ByDecide + ", for the sandbox"
	case a.Remembered:
		return ByDecide + ", for the run"
	}
	return ByDecide
}

// ByDecide is the rule of what Decide has answered. Of a remembered answer, there is more behind it.
const ByDecide = "Decide"

// IsByDecide reports whether a rule is that of an Answer. An entry of the policy's lists has no comma.
func IsByDecide(rule string) bool {
	return rule == ByDecide || strings.HasPrefix(rule, ByDecide+", ")
}

// asked is a question that has not been answered yet, shared by all equal ones.
type asked struct {
	Question
	keys    keys
	waiting int
	since   uint64 // the Asker's, and
	at      uint64 // the Memory's time, when it began
	forgot  bool   // Forget was called
	cancel  context.CancelFunc
	done    chan struct{}
	answer  Answer // once done is closed
}

// Ask returns the answer to a question: a remembered one, or Decide's. It returns at the latest when ctx or the run ends,
// or the patience with Decide, even if that does not return.
func (a *Asker) Ask(ctx context.Context, question Question) Answer {
	q, answer := a.join(question)
	if q == nil {
		return answer
	}
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.cancel()
		a.remove(q) // a client that asks the same from now on begins a new question
	}
	select {
	case <-q.done:
		q.answer.Forgotten = q.forgot
		return q.answer
	default:
		return denied("the client has gone before it was decided")
	}
}

// Forget forgets the run's verdicts, and for this run those of the sandbox, and gives up what is asked: Decide is asked anew.
func (a *Asker) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = a.Memory.goOn()
	for _, q := range a.open {
		q.forgot = true
		q.cancel()
	}
	clear(a.open)
}

func denied(why string) Answer { return Answer{Verdict: policy.Verdict{Reason: why}} }

// join returns what is remembered, or adds a waiter to a question, which it begins if needed.
func (a *Asker) join(question Question) (*asked, Answer) {
	k := keys{own: sha256.Sum256([]byte(question.Same))}
	if k.thing = k.own; question.Thing != "" {
		k.thing = sha256.Sum256([]byte("all of " + question.Thing))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, now := a.remembered(k, a.since)
	if answer.Remembered {
		return nil, answer
	}
	if q := a.open[k.own]; q != nil {
		q.waiting++
		return q, Answer{}
	}
	ctx, cancel := context.WithCancel(a.Ctx)
	q := &asked{Question: question, keys: k, waiting: 1, since: a.since, at: now, cancel: cancel, done: make(chan struct{})}
	if !a.Spawn(func() { a.await(ctx, q) }) {
		cancel()
		return nil, denied(ErrClosed.Error())
	}
	if a.open == nil {
		a.open = map[key]*asked{}
	}
	a.open[k.own] = q // before await takes it out: it needs the lock
	return q, Answer{}
}

// remembered is the verdict that lasts for a question, and the Memory's time.
func (a *Asker) remembered(k keys, since uint64) (Answer, uint64) {
	v, known, now := a.Memory.find(k, since)
	if own, has, _ := a.Run.find(k, since); has {
		v, known = own, true
	}
	return Answer{Verdict: v, Remembered: known}, now
}

// await waits for the answer to a question and gives it to all who wait.
func (a *Asker) await(ctx context.Context, q *asked) {
	answer, known := a.awaitTurn(ctx, q)
	if !known {
		answer = a.awaitDecide(ctx, q)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q.answer = answer
	a.remove(q)
	close(q.done)
	q.cancel()
}

// remove takes a question out of those that further clients can join. The caller holds the lock.
func (a *Asker) remove(q *asked) {
	if a.open[q.keys.own] == q {
		delete(a.open, q.keys.own)
	}
}

// awaitTurn waits until no other question about the same thing is open. True: it has the answer, which may have been given meanwhile.
func (a *Asker) awaitTurn(ctx context.Context, q *asked) (Answer, bool) {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	for {
		other := a.Memory.turn(q.About)
		if other == nil {
			answer, _ := a.remembered(q.keys, q.since)
			if answer.Remembered {
				a.Memory.end(q.About)
			}
			return answer, answer.Remembered
		}
		select {
		case <-other:
		case <-ctx.Done():
			return a.late("another question about it was not answered within %v"), true
		}
	}
}

// late is the denial of a question whose time is over.
func (a *Asker) late(format string) Answer {
	if a.Ctx.Err() != nil {
		return denied(ErrClosed.Error())
	}
	return denied(fmt.Sprintf(format, a.Patience.Round(time.Millisecond)))
}

// awaitDecide asks, if there is room for another call, and waits for the verdict. A Decide that ignores its context is not
// waited for, and nothing is asked about the same thing until it returns.
func (a *Asker) awaitDecide(ctx context.Context, q *asked) Answer {
	if !a.calls.Acquire(a.Most) {
		a.Memory.end(q.About)
		return denied("too many questions are open")
	}
	if q.Asked != nil {
		q.Asked()
	}
	answer := a.call(ctx, q)
	if q.Answered != nil {
		q.Answered(answer)
	}
	return answer
}

// call calls Decide, in a goroutine that frees the place of the call, and the turn, when Decide has returned.
func (a *Asker) call(ctx context.Context, q *asked) Answer {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	answer := make(chan policy.Verdict, 1)
	go func() {
		var v policy.Verdict
		defer func() { // of runtime.Goexit, too
			a.keep(ctx, q, v)
			a.calls.Release()
			answer <- v
		}()
		if Panics(func() { v = q.Decide(ctx) }) {
			v = policy.Verdict{Reason: "the policy's Decide panicked"}
		}
	}()
	select {
	case v := <-answer:
		return Answer{Verdict: v}
	case <-ctx.Done():
		return a.late("Decide did not answer within %v")
	}
}

// keep remembers a verdict that has come in time, and gives up the turn.
func (a *Asker) keep(ctx context.Context, q *asked, v policy.Verdict) {
	if ctx.Err() != nil {
		v.For = policy.Once
	}
	switch v.For {
	case policy.Run:
		a.Run.keep(q.keys, v, q.at)
	case policy.Sandbox:
		a.Memory.keep(q.keys, v, q.at)
	}
	a.Memory.end(q.About)
}
