package stage

import "github.com/holdfast-dev/holdfast/internal/stage/wire"

// A Template is a plan lowered to system calls, with every pointer an offset.
// It does not change once made and serves any number of runs.
type Template struct {
	NeedsOwn bool // each run has to bring a directory of its own

	ops    [wire.Places][]wire.Op
	blob   []byte
	steps  []wire.Span
	names  []string
	header wire.Header
	given  []givenFile

	connects int // how many of the supervisor's addresses each run gives, the last of them
}

// Identity is the user and group that the stage runs as, outside.
type Identity struct{ UID, GID int }

// A givenFile is a write whose text each run brings: an op, and which of the
// run's files it is.
type givenFile struct{ place, op, file int }

// StepName returns the words of step i, for an error.
func (t *Template) StepName(i int) string {
	if i >= 0 && i < len(t.names) {
		return t.names[i]
	}
	switch i {
	case wire.StepExecute:
		return "execute the tool"
	case wire.StepClone:
		return "clone a process"
	case wire.StepPrepare:
		return "prepare the stage"
	case wire.StepKilled:
		return "execute the tool: its system call filter killed it first"
	}
	return "unknown step"
}

const maxOwn = 1024
