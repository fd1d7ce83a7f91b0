package sandbox

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/runner"
)

// ErrDeadline is wrapped by the error of what was ended at a deadline: a run at
// Limits.WallClock, with the [*exec.ExitError] too, or a session.
var ErrDeadline = runner.ErrDeadline

// errNoSandbox is what Start returns for a command of a nil Sandbox.
var errNoSandbox = errors.New("sandbox: the Sandbox is nil: look at the error that New returned")

// What Start and Wait return beside os/exec's errors.
type (
	// A StartError is a wall that could not be built: nothing of the tool ran. Step is what was to be done, as Explain prints it, In where
	// ("stage", "init", "tool"), Err the errno, Field the policy's field, if one asks for the step, Found what stood in the way.
	StartError = runner.StartError
	// A StuckError is Wait's or [Session.Close]'s when a process of the run (PID, or one that PID waits for) was killed and has not ended within half a minute,
	// as one that waits for a file server. Everything else of the run is dead. Err is what Wait would have returned.
	StuckError = runner.StuckError
	// A ProcessError is Wait's when a process of the sandbox's own was killed before the tool had ended, and the run with it: for want of
	// memory, or by a process outside. Process is "init", "keeper" (without a pid namespace), or a session's "warden"; Status says how it
	// ended; Err is what Wait would have returned. A kill of the command's own process gives os/exec's error.
	ProcessError = runner.ProcessError
)
