package runner

import (
	"encoding/binary"
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
)

// refusals is the table in which one run's supervisor records what it refuses. It can be read while the run goes on and after it.
// The zero value is that of a run without a supervisor.
type refusals struct {
	mu     sync.Mutex
	file   *os.File
	list   []supervisor.Denial
	beyond uint64
}

// begin takes the descriptor of the memory that init shares; nil: there is none.
func (r *refusals) begin(f *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file = f
}

// end reads the table for the last time and lets go of the memory.
func (r *refusals) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
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
