package runner

import (
	"io"
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
