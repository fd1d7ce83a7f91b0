//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// What the ways into a sandbox of Linux and macOS have in common.

const errInvalid = syscall.EINVAL

// checkEmbedded refuses an embedded command that would not start the stage, or
// nothing in it.
func (r *run) checkEmbedded() error {
	if r.sandbox.ready.IsClosed() {
		return fmt.Errorf("sandbox: %w", os.ErrClosed)
	}
	if r.cmd.Path != r.stagePath() {
		return &PolicyError{Field: "Cmd.Path", Value: r.cmd.Path, Problem: "the embedded Cmd's Path was changed, which would start a program outside of the sandbox",
			Remedy: "set the Path of the sandbox's Cmd, or make a new command"}
	}
	if r.tool() == "" {
		r.cmd.Err = errors.New("exec: no command") // as os/exec does
		return r.cmd.Err
	}
	return nil
}

// checkDir refuses a working directory that will not be there.
func (r *run) checkDir() error {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	if !r.sandbox.sees(dir) {
		return &PolicyError{Field: "Dir", Value: dir, Problem: "the policy does not show the working directory", Remedy: "add it to Files.Read or Files.Write, or set the command's Dir, or Policy.Dir, to one that is shown", Err: fs.ErrNotExist}
	}
	return nil
}

func (r *run) isWatching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watching
}

// kill is the default Cancel: it ends everything inside, and returns when that is
// so.
func (r *run) kill() error {
	if r.cmd.Process == nil {
		return nil
	}
	err := r.killProcess()
	if r.isWatching() {
		r.stageEnded()
		<-r.empty
	}
	return err
}

// startError names the tool, not the stage, in an error of os.StartProcess.
func (r *run) startError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Path == r.stagePath() {
		return &fs.PathError{Op: pathErr.Op, Path: r.path, Err: pathErr.Err}
	}
	return err
}

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
