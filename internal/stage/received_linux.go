package stage

import (
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// receivedFDs holds the descriptors that have come up until they are taken.
type receivedFDs struct {
	mu     sync.Mutex
	files  [plan.MaxSlots]*os.File
	closed bool
}

// Received returns the descriptor that has come up for a slot and lets go of it:
// the caller closes it. By the time AwaitStart returns without a failure all have
// come. It returns nil for one that was taken already, and after Close, which
// closes those that were not taken.
func (c *Control) Received(slot int) *os.File {
	if slot < 0 || slot >= plan.MaxSlots {
		return nil
	}
	c.received.mu.Lock()
	defer c.received.mu.Unlock()
	f := c.received.files[slot]
	c.received.files[slot] = nil
	return f
}

// store keeps a descriptor for a slot.
func (p *receivedFDs) store(slot int64, fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || slot < 0 || slot >= plan.MaxSlots || p.files[slot] != nil {
		unix.Close(fd)
		return
	}
	p.files[slot] = os.NewFile(uintptr(fd), "passed up by a sandbox")
}

// failLost ends a run one of whose descriptors has not arrived. The kernel drops one
// when its receiver has as many as it may (unix(7), SCM_RIGHTS).
func (c *Control) failLost(m wire.Message) {
	if c.Failed == nil {
		c.Failed = &Failure{Step: int(m.Step), Where: int(m.Where), Errno: unix.EMFILE}
	}
	c.doomed = true
	c.KillInit()
}
