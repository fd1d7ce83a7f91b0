package runner

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// refusals is the table in which one run's supervisor records what it refuses. It can be read while the run goes on and after it.
// The zero value is that of a run without a supervisor.
type refusals struct {
	mu     sync.Mutex
	file   *os.File
	list   []supervisor.Denial
	beyond uint64

	watch    *watcher // nil: the policy watches nothing
	ring     supervisor.WatchReader
	lost     uint64         // records of the ring for which there was no room
	ended    chan struct{}  // closed: nothing is recorded any more
	emptying sync.WaitGroup // the goroutine of emptyRing
}

// begin takes the descriptor of the memory that init shares; nil: there is none. With Files.Watch the ring in it is
// emptied from now on.
func (r *refusals) begin(f *os.File, s *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file = f; f == nil || !s.Policy.Files.Watch {
		return
	}
	r.watch, r.ended = newWatcher(s), make(chan struct{})
	r.ring.Read = func(b []byte, at int64) bool { _, err := f.ReadAt(b, at); return err == nil }
	r.ring.Write = func(b []byte, at int64) bool { _, err := f.WriteAt(b, at); return err == nil }
	ended := r.ended
	r.emptying.Go(func() { r.emptyRing(ended) })
}

// emptyRing takes records out of the ring before it is full, unless the tool makes them faster than that.
func (r *refusals) emptyRing(ended <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			r.mu.Lock()
			r.readRing()
			r.mu.Unlock()
		}
	}
}

// watchEvery is how often the ring is emptied: a tool that does nothing but look at absent files fills it in some 40 ms.
const watchEvery = 5 * time.Millisecond

// readRing takes out what is in the ring.
func (r *refusals) readRing() {
	if r.watch != nil && r.file != nil {
		r.lost = r.ring.All(r.watch.add)
	}
}

// watched returns what Files.Watch has found so far, and how much more there was.
func (r *refusals) watched() ([]policy.Violation, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readRing()
	if r.watch == nil {
		return nil, 0
	}
	return slices.Clone(r.watch.list), r.watch.beyond + r.lost
}

// end reads the table for the last time and lets go of the memory. It leaves no goroutine.
func (r *refusals) end() {
	defer r.emptying.Wait() // without the lock, which the goroutine takes
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	r.readRing()
	if r.ended != nil {
		close(r.ended)
		r.ended = nil
	}
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// get returns what has been refused so far, and how many denials the table had no room for.
func (r *refusals) get() ([]supervisor.Denial, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	return r.list, r.beyond
}

// read copies the table, unless it is empty.
func (r *refusals) read() {
	var used [4]byte
	if r.file == nil {
		return
	}
	if _, err := r.file.ReadAt(used[:], 0); err != nil || binary.NativeEndian.Uint32(used[:]) == 0 {
		return
	}
	table := make([]byte, supervisor.DenialBytes)
	if _, err := r.file.ReadAt(table, 0); err != nil {
		return // it is memory, and of its full size from the first
	}
	r.list, r.beyond = supervisor.ReadDenials(table)
}
