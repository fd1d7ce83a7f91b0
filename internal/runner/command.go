//go:build linux || darwin

package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Start starts the command, and returns when the tool has been executed inside its walls, and otherwise
// the error.
func (r *Run) Start() error {
	if r == nil {
		return errNoCommand
	}
	r.quiet, r.gated = true, true
	if err := r.cmd.Start(); err != nil {
		r.abandon()
		r.openGate(false)
		return r.startError(err)
	}
	r.watch()
	r.openGate(true)
	<-r.decided
	if err := r.failure(); err != nil {
		r.bury()
		return err
	}
	return nil
}

// bury ends a command that was started and whose tool was not, and
// leaves the fields as a failed Start of os/exec leaves them.
func (r *Run) bury() {
	if r.cmd.WaitDelay != 0 {
		r.reap(r.cmd.Wait)
		r.forget()
		return
	}
	// The copying goroutines may be stuck in the caller's readers, or wait for a descriptor that a session's init has.
	// os/exec's goroutine of the context may be reading the field: it is set in a copy, whose Wait waits for that goroutine.
	c := *r.cmd
	c.WaitDelay = 1
	r.reap(c.Wait)
	c.WaitDelay = 0
	r.mu.Lock()
	*r.cmd = c
	r.mu.Unlock()
	r.forget()
}

// Wait waits for the command. It returns when every process inside is dead.
func (r *Run) Wait() error {
	if r == nil {
		return errors.New("exec: not started")
	}
	err := r.reap(r.cmd.Wait)
	if r.cmd.ProcessState != nil {
		r.settle()
	}
	return r.waitError(err)
}

// Output runs the command and returns what it printed.
func (r *Run) Output() ([]byte, error) {
	if r == nil {
		return nil, errNoCommand
	}
	r.quiet, r.gated = true, r.cmd.Cancel != nil // without Cancel, no goroutine watches until the end
	var out []byte
	err := r.reap(func() (err error) {
		out, err = r.cmd.Output()
		return err
	})
	r.openGate(false)
	if r.cmd.Process == nil {
		r.abandon()
		return nil, r.startError(err)
	}
	r.settle()
	if failed := r.failure(); failed != nil {
		r.forget()
		return nil, failed
	}
	return out, r.waitError(err)
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

// reap calls what waits for the process.
func (r *Run) reap(wait func() error) error {
	set := func(is bool) {
		r.mu.Lock()
		r.reaping = is
		r.mu.Unlock()
	}
	set(true)
	defer set(false)
	if r.session != nil && !r.borrowed {
		defer r.endsLeft()()
	}
	return wait()
}

// processState is how the process ended; nil: it is not known yet.
func (r *Run) processState() *os.ProcessState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reaping {
		return nil
	}
	return r.cmd.ProcessState
}

// forget leaves the exec.Cmd as a failed Start of os/exec leaves it. Another goroutine
// may be asking for the report.
func (r *Run) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd.Process, r.cmd.ProcessState = nil, nil
}

// kill is the default Cancel: it ends everything inside, and returns when that is
// so.
func (r *Run) kill() error {
	if r.cmd.Process == nil {
		return nil
	}
	err := r.killProcess()
	r.awaitEmpty()
	return err
}

// awaitEmpty waits, if the run was begun, until every process is dead; now that the stage has ended or was killed, not
// without end.
func (r *Run) awaitEmpty() {
	r.mu.Lock()
	watching := r.watching
	r.mu.Unlock()
	if watching {
		r.endOver()
		<-r.empty
	}
}

func (r *Run) isWatching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watching
}

// startError names the tool, not the stage, in an error of os.StartProcess.
func (r *Run) startError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Path == r.stagePath() {
		return &fs.PathError{Op: pathErr.Op, Path: r.path, Err: pathErr.Err}
	}
	return err
}

// checkDir refuses a working directory that will not be there.
func (r *Run) checkDir() error {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	if !r.sandbox.shows(dir) {
		return hiddenDir(dir)
	}
	return nil
}

// endsLeft has what the command's tool has left behind end with the command's context, or at its deadline, until stop: os/exec looks at neither once the
// process has ended, and reads for as long as anything has the other end of its pipes. stop returns when that is over.
func (r *Run) endsLeft() (stop func()) {
	ctx, cancel := r.caller, context.CancelFunc(func() {})
	if r.cmd.Cancel == nil {
		ctx = context.Background() // as os/exec does
	}
	if ms := r.sandbox.Plan.DeadlineMS; ms > 0 && !r.plain {
		began := r.began
		if began.IsZero() {
			began = time.Now()
		}
		ctx, cancel = context.WithDeadlineCause(ctx, began.Add(time.Duration(ms)*time.Millisecond), ErrDeadline)
	}
	if ctx.Done() == nil {
		return cancel
	}
	returned, ended := make(chan struct{}), make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(ended)
		select {
		case <-r.empty:
		case <-returned:
			return
		}
		r.cmd.Process.Signal(syscall.SIGCONT) // a stage that was stopped has yet to end as its tool did
		was, stuck := r.killLeft()
		if !was {
			return
		}
		if r.cut = ctx.Err(); stuck != nil {
			r.cut = stuck
		} else if context.Cause(ctx) == ErrDeadline {
			r.cut = ErrDeadline
		}
	})
	return func() {
		close(returned)
		if !unhook() {
			<-ended
		}
		cancel()
	}
}
