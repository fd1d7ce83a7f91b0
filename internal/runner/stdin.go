package runner

import (
	"io"
	"os"
	"sync"
)

// A gate stands before the caller's reader until it is known whether the tool
// was executed. os/exec starts to copy as soon as the stage has been started;
// but when Start fails, nothing may have been read, and no goroutine may be
// stuck in a reader that blocks.
type gate struct {
	io.Reader
	failure func() error // the run's
	once    sync.Once
	copied  chan struct{} // closed: os/exec has taken the gate from the Cmd's Stdin
}

// Read reads from the caller's reader once the tool has been executed.
func (g *gate) Read(p []byte) (int, error) {
	g.once.Do(func() { close(g.copied) })
	if g.failure() != nil {
		return 0, io.EOF
	}
	return g.Reader.Read(p)
}

// closeGate puts a gate before Stdin where os/exec would copy from it.
func (r *Run) closeGate() {
	if _, file := r.cmd.Stdin.(*os.File); r.gated && r.cmd.Stdin != nil && !file {
		r.gate = &gate{Reader: r.cmd.Stdin, failure: r.failure, copied: make(chan struct{})}
		r.cmd.Stdin = r.gate
	}
}

// openGate gives the Cmd its Stdin back. A goroutine of os/exec that has been
// started reads the field first.
func (r *Run) openGate(started bool) {
	if r.gate == nil {
		return
	}
	if started {
		<-r.gate.copied
	}
	r.cmd.Stdin, r.gate = r.gate.Reader, nil
}
