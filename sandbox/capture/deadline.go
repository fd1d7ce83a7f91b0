package capture

import (
	"sync"
	"time"
)

// A deadline is a moment that may be moved, and a channel that is closed from then
// on. The zero value is never.
type deadline struct {
	mu     sync.Mutex
	passed chan struct{}
	timer  *time.Timer
}

// wait returns what is closed when the moment has come.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

// set moves the moment. A zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	running := d.timer != nil && d.timer.Stop() || d.timer == nil
	d.timer = nil
	// A timer that could not be stopped closes the channel, or has.
	if !running || isClosed(d.passed) {
		d.passed = nil
	}
	if t.IsZero() {
		return
	}
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	passed := d.passed
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(passed) })
		return
	}
	close(passed)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c: // of a nil channel nothing comes
		return true
	default:
		return false
	}
}
