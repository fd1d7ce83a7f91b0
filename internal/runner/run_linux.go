package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// contact is what connects a run with its stage.
type contact struct {
	given    []*os.File // what the stage is given beside its own
	exe      *os.File   // the last of them, if the run has opened it
	launcher *launch.Launcher
	control  *stage.Control
	program  *os.File
	template *stage.Template
	path     string // the tool's, as it was when the run entered, and the functions of Tool
	born     func(pid int) error
	built    func(pid int) error
	inRoot   bool // the root is an explicit one, in which what the harness sees at a path says nothing
	watching bool
	refusals refusals
	stuck    int // a process that was killed and has not ended; set before empty is closed
}

// watch begins to read what the stage says. It is called once the process has
// been started, by os/exec's second question or by our own Start.
func (r *Run) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching || r.control == nil {
		return
	}
	r.watching = true
	r.program.Close()
	r.exe.Close() // a nil one does not mind
	r.control.Passed()
	if r.observer.wanted() {
		r.observer.started(r.began, policy.Started{PID: r.cmd.Process.Pid, Tool: r.path, Args: slices.Clone(r.cmd.Args), Dir: r.dir})
	}
	go r.listen()
}

// listen follows the run to its end.
func (r *Run) listen() {
	r.control.AwaitStart()
	if r.net != nil && r.control.Held {
		r.net.Serve(r.control)
	}
	close(r.decided)
	r.control.AwaitEvidence()
	r.refusals.begin(r.control.Denials(), r.sandbox)
	close(r.told)
	released := r.releaseAtEnd()
	r.control.Drain()
	r.control.AwaitEmpty(r.over, stage.MostEnd)
	r.stuck = r.control.Stuck
	r.refusals.end()
	r.made().Close()
	r.own.remove()
	r.ended = time.Now()
	if r.observer.wanted() {
		e := r.outcome()
		refused := r.sandbox.Complete(r, &e)
		r.observer.ended(r.ended, e, refused)
	}
	r.control.Close()
	r.control.Release() // had they come with a failure
	<-released
	close(r.empty) // the last: Wait returns now
}

// releaseAtEnd lets the sandbox's mounts end as soon as init is dead, while the stage ends and what it said is read.
func (r *Run) releaseAtEnd() (released chan struct{}) {
	released = make(chan struct{})
	release := r.control.AtEnd()
	go func() {
		release()
		close(released)
	}()
	return released
}

// settle waits until the sandbox is empty and everything has been said.
func (r *Run) settle() {
	r.restore()
	r.watch()
	r.awaitEmpty()
}

// abandon lets go of what enter has opened when Start failed after it.
func (r *Run) abandon() {
	r.restore()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching {
		return
	}
	r.made().Close()
	if r.control == nil {
		return
	}
	r.program.Close()
	r.exe.Close()
	r.control.Close()
	r.control = nil
	r.own.remove()
}

// failure is the error of a tool that was never executed; nil: it was. It is
// called after decided is closed.
func (r *Run) failure() error {
	<-r.decided
	if r.control.Held {
		return nil // listen goes on, and may yet hear of a failure
	}
	f := r.control.Failed
	switch {
	case f != nil && f.Exec():
		if hidden := (*policy.PolicyError)(nil); f.Errno == syscall.ENOENT && !r.inRoot && errors.As(r.sandbox.checkExecutable(r.cmd, r.dir, r.path), &hidden) {
			return hidden
		}
		return &fs.PathError{Op: "fork/exec", Path: r.path, Err: f.Errno}
	case f != nil && r.template.StepName(f.Step) == "enter the working directory":
		return &fs.PathError{Op: "chdir", Path: r.dir, Err: f.Errno}
	case f != nil && r.control.GateErr != nil:
		return r.control.GateErr
	case f != nil:
		e := &StartError{Step: r.template.StepName(f.Step), In: plan.Place(f.Where).String(), Err: f.Errno, Found: f.Found}
		if f.Step < len(r.sandbox.Plan.Steps) {
			e.Field = r.sandbox.Plan.Steps[f.Step].Field
		}
		return e
	}
	return nil // killed on the way, as a process of os/exec's may be: Wait tells
}

// waitError adds what the run knows to os/exec's result.
func (r *Run) waitError(err error) error {
	switch {
	case r.control == nil || r.cmd.ProcessState == nil:
		return err
	case r.stuck != 0:
		return &StuckError{PID: r.stuck, Err: err}
	case r.control.Deadline:
		return &deadlineError{err}
	case r.control.Lost != nil:
		return r.processError(err)
	case !r.control.Held && r.cmd.ProcessState.Exited():
		return &StartError{Step: "run the stage", In: plan.Place(wire.InStage).String(), Err: errSilent}
	}
	return err
}

// outcome is how the run ended, by what the stage has said.
func (r *Run) outcome() policy.Ended {
	c := r.control
	e := policy.Ended{Status: "signal: killed", ExitCode: -1} // the stage had no time to say it
	if !c.Held {
		e.Status = "not started"
	} else if c.Ended != nil {
		e.Status, e.ExitCode = fmt.Sprintf("exit status %d", c.Ended.Status.ExitStatus()), c.Ended.Status.ExitStatus()
		if c.Ended.Status.Signaled() {
			e.Status = "signal: " + c.Ended.Status.Signal().String()
		}
	}
	switch err := r.failure(); {
	case err != nil:
		e.Err = err.Error()
	case r.stuck != 0:
		e.Err, e.Unheld = (&StuckError{PID: r.stuck}).Error(), []policy.Bound{policy.BoundProcesses}
	case c.Deadline:
		e.Status = "ended at its deadline, " + (time.Duration(r.sandbox.Plan.DeadlineMS) * time.Millisecond).String()
		e.Err = ErrDeadline.Error()
	case c.Lost != nil:
		e.Err = r.processError(nil).Error()
	case c.Ended == nil && r.caller.Err() != nil:
		e.Err = r.caller.Err().Error()
	}
	if c.Ended != nil {
		u := c.Ended.Usage
		e.UserTime, e.SystemTime, e.MaxRSS = time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), int64(u.Maxrss)<<10
	}
	return e
}

// processError is the error of a run that ended with a process of the sandbox's own; nil:
// it did not.
func (r *Run) processError(err error) *ProcessError {
	lost := r.control.Lost
	switch {
	case lost == nil:
		return nil
	case lost.Keeper:
		return &ProcessError{Process: "keeper", Status: "ended", Err: err}
	case lost.Status.Signaled():
		return &ProcessError{Process: "init", Status: "was killed: " + lost.Status.Signal().String(), Err: err}
	}
	return &ProcessError{Process: "init", Status: fmt.Sprintf("ended with status %d", lost.Status.ExitStatus()), Err: err}
}

// errSilent: a stage that exits without having said that the tool was held has
// not run it.
var errSilent = errors.New("the stage exited without reporting a status")

// killProcess ends the stage, and with it everything.
func (r *Run) killProcess() error { return r.cmd.Process.Kill() }
