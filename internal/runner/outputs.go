package runner

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/output"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// keptOutputs is how many commands that have ended are remembered with what they have printed.
const keptOutputs = 16

// outputs is what the commands of a session have printed, by their ids.
type outputs struct {
	mu    sync.Mutex
	last  int // the highest id
	logs  map[int]*output.Log
	ended []int // in the order of their ends
}

// A numbered is the output of one command.
type numbered struct {
	id  int
	log *output.Log
}

func (o *outputs) begin() *numbered {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	n := &numbered{o.last, output.New()}
	if o.logs == nil {
		o.logs = map[int]*output.Log{}
	}
	o.logs[n.id] = n.log
	return n
}

// forget removes a command that was not started.
func (o *outputs) forget(id int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.logs, id)
}

// end notes that no process of a command is left.
func (o *outputs) end(id int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logs[id] == nil || slices.Contains(o.ended, id) {
		return
	}
	if o.ended = append(o.ended, id); len(o.ended) > keptOutputs {
		o.logs[o.ended[0]].Close()
		delete(o.logs, o.ended[0])
		o.ended = o.ended[1:]
	}
}

// of returns a command's.
func (o *outputs) of(id int) (*output.Log, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.logs[id]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("sandbox: the output of command %d of the session: %w", id, os.ErrNotExist)
}

// close ends the reading of them all.
func (o *outputs) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.logs {
		l.Close()
	}
}

// unseen is the error of a command whose output goes to files.
func unseen() error {
	return &policy.PolicyError{Field: "Cmd.Stdout", Problem: "and Stderr are files (or pipes that os/exec has made), whose content the session does not see", Remedy: "leave them nil, or set an io.Writer"}
}
