package proxy

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// An idleWatchdog ends a request during which nothing moves. The connections below it have
// deadlines for that; net/http's read of a client's body has none.
type idleWatchdog struct {
	x      *proxiedRequest
	ctx    context.Context
	cancel context.CancelCauseFunc
	client *http.ResponseController

	mu    sync.Mutex
	timer *time.Timer // nil: the request is over, and its ResponseWriter must not be used
	seen  int64
}

// watchIdle returns a context that ends, with the request, when nothing has moved for as
// long as a tunnel may be idle. The caller calls end when the request is over.
func (x *proxiedRequest) watchIdle(ctx context.Context, w http.ResponseWriter) (_ context.Context, end func()) {
	s := &idleWatchdog{x: x, client: http.NewResponseController(w)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.client.SetReadDeadline(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(x.g.idleTimeout, s.look)
	return s.ctx, s.end
}

// look ends the request if nothing has moved since it has looked last.
func (s *idleWatchdog) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return
	}
	if moved := s.x.sent.Load() + s.x.received.Load(); moved != s.seen {
		s.seen = moved
		s.timer.Reset(s.x.g.idleTimeout)
		return
	}
	s.cancel(errIdle)
	past := time.Unix(1, 0)
	s.client.SetReadDeadline(past)
	s.client.SetWriteDeadline(past)
}

func (s *idleWatchdog) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.timer = nil
	idle := context.Cause(s.ctx) == errIdle
	if idle {
		s.x.err = errIdle
	}
	s.cancel(nil)
	switch {
	case idle || s.x.uploadReads.Load() > 0:
		// net/http does not send the response before a pending read of the body returns.
		s.client.SetReadDeadline(time.Unix(1, 0))
	case !s.x.uploaded.Load(): // it reads a little of the rest itself
		s.client.SetReadDeadline(time.Now().Add(s.x.g.idleTimeout))
	}
}
