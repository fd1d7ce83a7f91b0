package runner

import (
	"os"
	"sync"
)

// Made is the record of the directories that the tools of one Sandbox have made, or those of all [sandbox.Command]s of this process. Supervisors
// write it, in memory that the tools do not have; what a command that was killed had not written in it counts as not made. It lasts as
// long as a Sandbox or a command has it.
type Made struct {
	once sync.Once
	file *os.File // nil: there is no memory for it, and nothing counts as made
}

// MadeByProcess is that of [sandbox.Command].
var MadeByProcess Made
