package runner

import (
	"testing"
	"time"
)

// TestALookAtPortsIsNeverLate: on a busy machine with many sockets a look has taken a second, and the next would have come after a minute.
func TestALookAtPortsIsNeverLate(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: portsEvery, time.Millisecond: portsEvery, 5 * time.Millisecond: 250 * time.Millisecond, time.Second: portsLatest, time.Minute: portsLatest} {
		if got := afterLook(took); got != want {
			t.Errorf("after %v: %v, not %v", took, got, want)
		}
	}
}
