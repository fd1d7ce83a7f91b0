package runner

import (
	"testing"
	"time"
)

// TestADeadlineThatWasMoved does not strike by the timer of the one before, and none strikes after the end.
func TestADeadlineThatWasMoved(t *testing.T) {
	var d deadline
	struck := 0
	end := func() { struck++ }
	d.set(time.Hour, end)
	d.strike(end) // as a timer that has run out while set moved it
	if struck != 0 || d.struck.Load() || !d.set(time.Hour, end) {
		t.Error("it has struck before its time")
	}
	d.mu.Lock()
	d.at = time.Now().Add(-time.Second)
	d.mu.Unlock()
	d.strike(end)
	if struck != 1 || d.set(time.Hour, end) {
		t.Error("it has not struck, or could be moved afterwards")
	}
	d.stop()
	var over deadline
	over.set(time.Hour, end)
	over.stop()
	over.at = time.Now().Add(-time.Second)
	if over.strike(end); struck != 1 || over.set(time.Hour, end) {
		t.Error("it has struck after the session's end")
	}
}
