package runner

import (
	"sync"
	"sync/atomic"
	"time"
)

// A deadline is a session's own, which can be moved.
type deadline struct {
	struck atomic.Bool
	mu     sync.Mutex
	at     time.Time
	timer  *time.Timer // nil: there is none
	over   bool
}

// set moves it to a time from now; end is called when it comes. False: it has come, or the session has ended.
func (d *deadline) set(in time.Duration, end func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.struck.Load() {
		return false
	}
	if d.at = time.Now().Add(in); d.timer == nil {
		d.timer = time.AfterFunc(in, func() { d.strike(end) })
	} else {
		d.timer.Reset(in)
	}
	return true
}

// strike ends the session, if the deadline was not moved when its timer had run out.
func (d *deadline) strike(end func()) {
	d.mu.Lock()
	due := !d.over && !time.Now().Before(d.at)
	if due {
		d.struck.Store(true)
	}
	d.mu.Unlock()
	if due {
		end()
	}
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over = true; d.timer != nil {
		d.timer.Stop()
	}
}
