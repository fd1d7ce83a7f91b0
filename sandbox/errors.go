package sandbox

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/runner"
)

// ErrDeadline is wrapped by Wait's error when the run was ended at its policy's
// wall-clock limit. The error wraps the [*exec.ExitError] too.
var ErrDeadline = runner.ErrDeadline

// errNoSandbox is what Start returns for a command of a nil Sandbox.
var errNoSandbox = errors.New("sandbox: the Sandbox is nil: look at the error that New returned")

// What Start and Wait return beside os/exec's errors.
type (
	// A StartError is a wall that could not be built: nothing of the tool ran. Step is what was to be done, as
	// Explain prints it, and In where: "stage", "init" or "tool". Err is the errno. Field is the policy's field
	// that the step comes from, such as "Root.Entries[3]", and Found what stood in the way, if that says more: a
	// link's target; "" if there is none.
	StartError = runner.StartError
	// A StuckError is Wait's when a process of the run was killed and has not ended within half a minute: the
	// kernel holds it up, as it does one that waits for a file server which does not answer. Everything else of
	// the run is dead. PID is that process's, or that of the sandbox's first one, which waits for it; Err is
	// what Wait would have returned.
	StuckError = runner.StuckError
	// A ProcessError is Wait's when a process of the sandbox's own was killed before the tool had ended: by the
	// kernel for want of memory, or by a process outside. Process is "init", which is the supervisor too, or
	// "keeper", which stands in for a pid namespace; Status says how it ended. The whole run ends with it: what
	// the tool would have gone on with is not bounded any more. Err is what Wait would have returned.
	//
	// A kill of the command's own process, as [os.Process.Kill] or a signal to the process group is, is the
	// harness's, and gives the error that os/exec gives.
	ProcessError = runner.ProcessError
)
