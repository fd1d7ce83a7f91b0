package proxy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// approvals are the questions that Decide has not answered yet.
type approvals struct {
	ctx      context.Context // of the proxy
	spawn    func(func()) bool
	decide   func(context.Context, policy.Request) policy.Verdict // nil: the answer is no
	patience time.Duration
	maxCalls int // calls of decide that have not returned
	calls    callLimit

	mu   sync.Mutex
	open map[policy.Request]*approval
}

// A callLimit bounds the calls of the policy's functions (Decide, Lookup) that have not
// returned. A caller stops waiting when its context ends; a function that ignores its
// context keeps its place.
type callLimit struct{ open atomic.Int64 }

// acquire reports whether there is room for another call, which end ends.
func (c *callLimit) acquire(most int) bool {
	if c.open.Add(1) <= int64(most) {
		return true
	}
	c.release()
	return false
}

func (c *callLimit) release() { c.open.Add(-1) }

// panics calls one of the policy's functions, and reports whether that panics.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// An approval is one call of Decide, shared by all equal requests.
type approval struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	verdict policy.Verdict // once done is closed
}

// ask puts a request to Decide. Equal requests share one call. ask returns at the latest
// when Patience, ctx or the proxy ends, even if Decide does not return.
func (a *approvals) ask(ctx context.Context, r policy.Request) policy.Verdict {
	q := a.join(printableRequest(r))
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
		return policy.Verdict{Reason: "the client has gone before it was decided"}
	}
}

// join adds a waiter to the question about a request, which it begins if needed.
func (a *approvals) join(r policy.Request) *approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.open[r]; q != nil {
		q.waiting++
		return q
	}
	ctx, cancel := context.WithTimeout(a.ctx, a.patience)
	q := &approval{waiting: 1, cancel: cancel, done: make(chan struct{})}
	a.open[r] = q
	if !a.spawn(func() { a.await(ctx, q, r) }) {
		q.verdict = policy.Verdict{Reason: ErrClosed.Error()}
		close(q.done)
	}
	return q
}

// await waits for Decide's answer. A Decide that ignores its context
// is not waited for.
func (a *approvals) await(ctx context.Context, q *approval, r policy.Request) {
	answer := make(chan policy.Verdict, 1)
	if a.calls.acquire(a.maxCalls) {
		go func() {
			defer a.calls.release()
			var v policy.Verdict
			if panics(func() { v = a.decide(ctx, r) }) {
				v = policy.Verdict{Reason: "the policy's Decide panicked"}
			}
			answer <- v
		}()
	} else {
		answer <- policy.Verdict{Reason: "too many questions are open"}
	}
	v := policy.Verdict{Reason: fmt.Sprintf("Decide did not answer within %v", a.patience.Round(time.Millisecond))}
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
