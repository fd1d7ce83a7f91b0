package proxy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// asks are the questions that Decide has not answered yet.
type asks struct {
	ctx      context.Context // of the gateway
	spawn    func(func()) bool
	decide   func(context.Context, Request) Verdict // nil: the answer is no
	patience time.Duration
	most     int // calls of decide that have not returned
	deciding calls

	mu   sync.Mutex
	open map[Request]*question
}

// calls are those of the policy's own functions that have not returned. Whoever waits
// for one may go, and a function that does not heed its context stays: as many may as
// there may be connections.
type calls struct{ open atomic.Int64 }

// begin reports whether there is room for another call, which end ends.
func (c *calls) begin(most int) bool {
	if c.open.Add(1) <= int64(most) {
		return true
	}
	c.end()
	return false
}

func (c *calls) end() { c.open.Add(-1) }

// A question is one call of Decide, and those who wait for it.
type question struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	verdict Verdict // once done is closed
}

// ask puts a request to Decide. Whoever asks the same while it is being
// considered gets the same answer. It waits no longer than Patience, nor than ctx
// and the gateway last, even when Decide does.
func (a *asks) ask(ctx context.Context, r Request) Verdict {
	q := a.join(r.printable())
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.cancel()
	}
	select {
	case <-q.done:
		return q.verdict
	default:
		return Verdict{Reason: "the client has gone before it was decided"}
	}
}

// join adds a waiter to the question about a request, which it begins if needed.
func (a *asks) join(r Request) *question {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.open[r]; q != nil {
		q.waiting++
		return q
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.patience)
	q := &question{waiting: 1, cancel: cancel, done: make(chan struct{})}
	a.open[r] = q
	if !a.spawn(func() { a.consider(ctx, q, r) }) {
		q.verdict = Verdict{Reason: ErrClosed.Error()}
		close(q.done)
	}
	return q
}

// consider waits for Decide's answer. A Decide that does not heed its context is
// left alone with it: nothing waits for it.
func (a *asks) consider(ctx context.Context, q *question, r Request) {
	answer := make(chan Verdict, 1)
	if a.deciding.begin(a.most) {
		go func() {
			defer a.deciding.end()
			answer <- decide(ctx, a.decide, r)
		}()
	} else {
		answer <- Verdict{Reason: "too many questions are open"}
	}
	v := Verdict{Reason: fmt.Sprintf("Decide did not answer within %v", a.patience.Round(time.Millisecond))}
	select {
	case v = <-answer:
	case <-ctx.Done():
		if a.ctx.Err() != nil {
			v.Reason = ErrClosed.Error()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q.verdict = v
	delete(a.open, r)
	close(q.done)
	q.cancel()
}

// decide calls Decide; a panic in it is a denial.
func decide(ctx context.Context, f func(context.Context, Request) Verdict, r Request) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = Verdict{Reason: "the policy's Decide panicked"}
		}
	}()
	return f(ctx, r)
}
