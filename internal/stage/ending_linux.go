package stage

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// An Ending is how a run ended, and what its processes have used.
type Ending struct {
	Status syscall.WaitStatus // of the tool
	Usage  syscall.Rusage     // of init and all that were waited for inside
}

func newEnding(m wire.Message, usage []byte) *Ending {
	e := &Ending{Status: syscall.WaitStatus(m.Value)}
	copy(bytesOf(&e.Usage), usage)
	return e
}
