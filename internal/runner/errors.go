package runner

import (
	"errors"
	"fmt"
)

// ErrDeadline is wrapped by the error of what was ended at a deadline: a run at
// Limits.WallClock, with the [*exec.ExitError] too, or a session.
var ErrDeadline = errors.New("sandbox: the deadline was reached")

// A StuckError is Wait's or Session.Close's when a process of the run was killed and has not ended within
// half a minute: the kernel holds it up, as it does one that waits for a file server
// which does not answer. Everything else of the run is dead. Err is what Wait would have
// returned.
type StuckError struct {
	PID int // of the process, or of the sandbox's first one, which waits for it
	Err error
}

func (e *StuckError) Error() string {
	s := fmt.Sprintf("sandbox: process %d of the run was killed and does not end", e.PID)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *StuckError) Unwrap() error { return e.Err }

// A ProcessError is Wait's when a process of the sandbox's own was killed before the tool
// had ended: by a process outside, or, init and a warden, by the kernel for want of memory. Process is "init",
// which is the supervisor too; "keeper", which stands in for a pid namespace; or "warden", with which one
// command of a session ends, and not the session. The whole run ends with it: what the tool would have gone on with is not bounded any
// more. Err is what Wait would have returned.
//
// A kill of the command's own process, as [os.Process.Kill] or a signal to the process
// group is, is the harness's, and gives the error that os/exec gives.
type ProcessError struct {
	Process string
	Status  string // how it ended
	Err     error
}

func (e *ProcessError) Error() string {
	s := "sandbox: the run was ended: " + e.what()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ProcessError) what() string {
	return fmt.Sprintf("the sandbox's %s %s while the tool ran", e.Process, e.Status)
}

// Unwrap returns Err.
func (e *ProcessError) Unwrap() error { return e.Err }

// A StartError is a wall that could not be built: nothing of the tool ran.
type StartError struct {
	Step string // what was to be done, as Explain prints it
	In   string // where: "stage", "init" or "tool"
	Err  error  // the errno

	// Field is the policy's field that the step comes from, such as "Root.Entries[3]"; ""
	// if it comes from none.
	Field string
	// Found is what stood in the way, if that says more: a link's target.
	Found string
}

func (e *StartError) Error() string {
	s := fmt.Sprintf("sandbox: start: %s (in the %s): %v", e.Step, e.In, e.Err)
	if e.Found != "" {
		s += fmt.Sprintf(" (there is %q)", e.Found)
	}
	return s
}

// Unwrap returns the errno.
func (e *StartError) Unwrap() error { return e.Err }

// A deadlineError is what Wait returns of a run that was ended at its deadline.
type deadlineError struct{ err error }

func (e *deadlineError) Error() string {
	if e.err == nil {
		return ErrDeadline.Error()
	}
	return ErrDeadline.Error() + ": " + e.err.Error()
}

// Unwrap returns ErrDeadline and the exit error.
func (e *deadlineError) Unwrap() []error {
	if e.err == nil {
		return []error{ErrDeadline}
	}
	return []error{ErrDeadline, e.err}
}

// errNoCommand is os/exec's, of a sandbox.Cmd that no function of that package has made: it has no run.
var errNoCommand = errors.New("exec: no command: the sandbox.Cmd was not made by Command")
