package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/function"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// contact is what connects a run with its stage.
type contact struct {
	files     []*os.File // the tool's descriptors from 3 up
	given     []*os.File // what the stage is given beside its own
	way       *os.File   // the first of them, of a session's command
	exe       *os.File   // the last of them, if the run has opened it
	launcher  *launch.Launcher
	control   *stage.Control
	program   *os.File
	template  *stage.Template
	id        stage.Identity // the tool's
	function  string         // the tool's name, if it is a function
	call      *function.Call // which it is given
	path      string         // the tool's, as it was when the run entered, and the functions of Tool
	born      func(pid int) error
	built     func(pid int) error
	inRoot    bool // the root is an explicit one, in which what the harness sees at a path says nothing
	watching  bool
	stage     *os.File // its pidfd, while its end is waited for; nil: see awaitStage
	refusals  refusals
	discarded supervisor.Names // of a single command; set before empty is closed
	stuck     int              // a process that was killed and has not ended; set before empty is closed
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
	if p := r.printed.Load(); p != nil {
		p.log.Started()
	}
	r.program.Close()
	r.exe.Close() // a nil one does not mind
	r.way.Close()
	hurry := r.control.Passed()
	if r.call != nil {
		r.call.Passed()
	}
	if r.sandbox.Policy.Observe != nil && r.cmd.Process != nil {
		r.observer.started(r.began, policy.Started{PID: r.cmd.Process.Pid, Tool: r.path, Args: slices.Clone(r.cmd.Args), Dir: r.dir})
	}
	ended, listen := r.endOver, r.listen
	if r.session != nil { // init may yet say that the command has lost its warden, and kill what that has left
		ended, listen = func() { time.AfterFunc(time.Second, r.endOver) }, r.listenInside
	} else {
		r.hurry = hurry
	}
	r.stage = awaitStage(r.cmd.Process, ended)
	go listen()
}

// listen follows the run to its end.
func (r *Run) listen() {
	r.control.AwaitStart()
	if r.net != nil && r.control.Started {
		var processes func() []policy.Process
		if r.sandbox.NetConfig.Dials && r.sandbox.meets() {
			processes = r.processes
		}
		r.net.Serve(r.control, processes, r.cmd.Process.Pid)
	}
	close(r.decided)
	r.control.AwaitEvidence()
	var tell func() // nil: there is no observer
	if r.sandbox.Policy.Observe != nil {
		tell = func() { r.tellRefused(&r.observer) }
	}
	r.refusals.begin(r.control.Denials, r.control.Questions, r.sandbox, r.answers(), &r.observer, tell)
	close(r.told)
	release, released := r.control.AtEnd(func(scratch *os.File) { r.discarded = r.sandbox.discarded(scratch) }), make(chan struct{})
	go func() { release(); close(released) }() // the mounts end while the stage does, and what it said is read
	r.control.Drain()
	r.control.AwaitEmpty(r.over, stage.MostEnd)
	r.stuck = r.control.Stuck
	r.stage.Close() // a nil one does not mind
	r.refusals.end()
	r.net.Close()
	r.own.remove()
	r.ended = time.Now()
	if tell != nil {
		if r.stuck == 0 {
			<-released
		}
		tell()
		r.tellEnd()
	}
	r.control.Close()
	<-released
	close(r.empty) // the last: Wait returns now
}

// processes lists those of a single command, and the sandbox's own.
func (r *Run) processes() []policy.Process {
	list := addChildren(nil, r.cmd.Process.Pid, policy.Process{})
	if r.cmd.Process.Signal(syscall.Signal(0)) != nil {
		return nil // the stage has ended, and its number may be another process's
	}
	return list
}

// listenInside follows a session's command: to its tool's end, and then to that of all that it has left, of which the session's
// observer is told.
func (r *Run) listenInside() {
	r.session.join(r.control, member{r.path, r.printed.Load(), r.decided, r.empty, r.endStageless})
	var telling sync.Mutex
	to := &r.observer
	tell := func() {
		telling.Lock()
		defer telling.Unlock()
		r.tellRefused(to)
	}
	observed := r.sandbox.Policy.Observe != nil
	if !observed {
		tell = nil
	}
	var refill *time.Timer
	r.control.Follow(r.over, stage.MostEnd, func() {
		if r.untaken() {
			r.awaitSession()
		}
		close(r.decided)
		if r.borrowed { // one that fails is told of by the run that finds none
			refill = time.AfterFunc(refillAfter, func() { r.prepared.refill() })
		}
	}, func() {
		r.refusals.begin(r.control.Denials, r.control.Questions, r.sandbox, r.answers(), &r.observer, tell)
		close(r.told)
	})
	r.stage.Close() // a nil one does not mind
	if !r.control.ToolEnded {
		r.awaitSession()
	}
	if r.borrowed {
		stageEnded(r.cmd.Process, -1) // it takes the tool's status from the warden, which ends with the session
		r.stuck = r.session.endBorrowed()
	}
	r.stuck = max(r.stuck, r.control.Stuck)
	r.ended = time.Now()
	if observed {
		telling.Lock()
		r.tellRefused(to)
		to = &r.session.observer
		telling.Unlock()
		r.tellEnd()
	}
	close(r.empty)
	if refill != nil && refill.Stop() {
		go r.prepared.refill()
	}
	r.control.Discard(r.session.ended)
	r.refusals.end()
	if observed {
		tell()
	}
	r.session.leave(r.control)
	if p := r.printed.Load(); p != nil {
		r.session.outputs.end(p.id)
	}
	r.control.Close()
	close(r.gone)
}

// refillAfter is how long what replaces a prepared sandbox waits for the end of the command that has taken it: made at once, it would take the
// processor from a short one.
const refillAfter = 20 * time.Millisecond

// endStageless has listenInside look whether the tool has ended, and kill its warden if it has not, if the stage has ended.
func (r *Run) endStageless() {
	r.mu.Lock()
	p := r.cmd.Process
	r.mu.Unlock()
	if stageEnded(p, 0) {
		r.endOver()
	}
}

// untaken reports whether init has said nothing of a session's command: it is not held, and did not fail, or its stage could not hand it over.
func (r *Run) untaken() bool {
	f := r.control.Failed
	return !r.control.Started && (f == nil || f.Step == wire.StepClone && f.Where == wire.InStage)
}

// awaitSession is called when nothing more is said of a command whose tool has not ended. If init has not said either that the
// command is gone, then the session ends, and awaitSession returns after that.
func (r *Run) awaitSession() {
	if !r.control.Gone && r.control.Stuck == 0 && (r.control.Process() != nil || !r.session.lives()) {
		r.session.await(r.session.ended)
	}
}

// tellEnd tells the observer of the end of the run, or of a session's tool.
func (r *Run) tellEnd() {
	e := r.outcome()
	r.sandbox.Complete(r, &e)
	r.observer.ended(r.ended, e)
}

// tellRefused tells an observer what the supervisor has refused since it was called last: each denial once, with the count of that moment.
func (r *Run) tellRefused(to *observer) {
	denied, watched := r.refusals.fresh()
	for _, d := range denied {
		to.denied(JudgeDenial(d, []byte(r.sandbox.Plan.SupervisorRules()), r.sandbox.Policy.Files))
	}
	for _, v := range watched {
		to.denied(v)
	}
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
	r.giveBack()
	if r.forgetOutput(); r.control == nil {
		return
	}
	r.program.Close()
	r.exe.Close()
	r.way.Close()
	if r.call != nil {
		r.call.Close()
	}
	r.control.Close()
	r.control = nil
}

// abandonUnstarted is called at the end of Start of an embedded or wrapped exec.Cmd: os/exec asks its context nothing more when the fork has failed.
func (r *Run) abandonUnstarted() {
	if r.cmd.Process == nil {
		r.abandon()
	}
}

// failure is the error of a tool that was never executed; nil: it was. It is
// called after decided is closed.
func (r *Run) failure() error {
	<-r.decided
	if r.control.Started {
		return nil // listen goes on, and may yet hear of a failure
	}
	f := r.control.Failed
	if r.session != nil && r.untaken() && !r.control.Gone {
		if r.borrowed {
			return r.session.overBorrowed(f != nil, nil)
		}
		if err := r.session.over(nil); err != nil {
			return err
		}
	}
	switch {
	case f != nil && f.Exec():
		if hidden := (*policy.PolicyError)(nil); f.Errno == syscall.ENOENT && !r.inRoot && errors.As(r.sandbox.checkExecutable(r.cmd, r.dir, r.path), &hidden) {
			return hidden
		}
		return &fs.PathError{Op: "fork/exec", Path: r.path, Err: f.Errno}
	case f != nil && r.template.StepName(f.Step) == "enter the working directory":
		return &fs.PathError{Op: "chdir", Path: r.dir, Err: f.Errno}
	case f != nil && r.session != nil && f.Step == wire.StepClone && f.Errno == syscall.ECANCELED:
		return pausedError("starts no commands")
	case f != nil && r.session != nil && f.Step == wire.StepClone && f.Errno == syscall.EUSERS:
		return &policy.SessionError{Reason: fmt.Sprintf("has %d commands with processes, and more it cannot have", wire.MaxCommands), Remedy: "wait for some, or cancel those whose background processes are no longer needed", Err: syscall.EAGAIN}
	case f != nil && r.control.GateErr != nil:
		return r.control.GateErr
	case f != nil:
		p := r.sandbox.Plan
		if r.session != nil {
			p = p.ForSession()
		}
		return failedAs(r.id, host.ShortOf(failedStart(p, r.template, f)))
	}
	return nil // killed on the way, as a process of os/exec's may be: Wait tells
}

// waitError adds what the run knows to os/exec's result.
func (r *Run) waitError(err error) error {
	if r.call != nil {
		defer r.call.Close()
	}
	switch {
	case r.control == nil || r.cmd.ProcessState == nil:
		return err
	case r.stuck != 0:
		return &StuckError{PID: r.stuck, Err: err}
	case r.control.Deadline || r.cut == ErrDeadline:
		return &deadlineError{err}
	case r.cut != nil && err == nil: // as os/exec says that the context has ended a command which then exited with 0
		return r.cut
	case r.session != nil && !r.control.ToolEnded && !r.control.Gone:
		if r.borrowed {
			return r.session.overBorrowed(false, err)
		}
		select { // init has not said that the command is gone: it is dead, and the session's end on its way, or it has not heard of the command
		case <-r.session.ended:
		case <-time.After(time.Second):
		}
		if over := r.session.err(err); over != nil {
			return over
		}
		return err
	case r.control.Lost != nil:
		return r.processError(err)
	case !r.control.Started && r.cmd.ProcessState.Exited(): // the embedded Cmd's own Start has not waited for it
		if failed := r.failure(); failed != nil {
			return failed
		}
		return failedStart(r.sandbox.Plan, r.template, nil)
	case r.call != nil:
		return r.call.Result(err)
	}
	return err
}

// outcome is how the run ended, by what the stage has said.
func (r *Run) outcome() policy.Ended {
	c := r.control
	e := policy.Ended{Status: "signal: killed", ExitCode: -1} // the stage had no time to say it
	if !c.Started {
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
	if r.stuck == 0 && r.session == nil {
		e.Discarded = r.discarded.List
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
	return lostError(r.control.Lost, err)
}

// killProcess ends the stage, and with it everything. Of a session's command whose tool has ended it ends what that has left.
func (r *Run) killProcess() error {
	err := r.cmd.Process.Kill()
	if r.session == nil {
		return err
	}
	if was, stuck := r.session.endLeft(r.control, r.gone); was {
		return stuck
	}
	return err
}

// answers has what Files.Decide has answered for the run: that is the session's, as it is of the network's proxies.
func (r *Run) answers() *callback.Memory {
	if r.session != nil {
		return &r.session.answers
	}
	return new(callback.Memory)
}

// killLeft ends what the tool of a session's command has left, once the stage has taken the tool's status from the warden, which ends with it. A stage that is
// stopped, or a warden in a pause, has half a minute for that.
func (r *Run) killLeft() (was bool, stuck error) {
	stageEnded(r.cmd.Process, int(stage.MostEnd.Milliseconds()))
	return r.session.endLeft(r.control, r.gone)
}
