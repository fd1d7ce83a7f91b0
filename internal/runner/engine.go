//go:build linux || darwin

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// What the ways into a sandbox of Linux and macOS have in common.

// checkEmbedded refuses an embedded command that would not start the stage, or
// nothing in it.
func (r *Run) checkEmbedded() error {
	if r.sandbox.closed.Load() {
		return fmt.Errorf("sandbox: %w", os.ErrClosed)
	}
	if r.cmd.Path != r.stagePath() {
		return &policy.PolicyError{Field: "Cmd.Path", Value: r.cmd.Path, Problem: "the embedded Cmd's Path was changed, which would start a program outside of the sandbox",
			Remedy: "set the Path of the sandbox's Cmd, or make a new command"}
	}
	if r.path == "" {
		r.cmd.Err = errors.New("exec: no command") // as os/exec does
		return r.cmd.Err
	}
	return nil
}

// checkDir refuses a working directory that will not be there.
func (r *Run) checkDir() error {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	if !r.sandbox.shows(dir) {
		return &policy.PolicyError{Field: "Dir", Value: dir, Problem: "the policy does not show the working directory", Remedy: "add it to Files.Read or Files.Write, or set the command's Dir, or Policy.Dir, to one that is shown", Err: fs.ErrNotExist}
	}
	return nil
}

// stageEnded says that what is left of the run need not be waited for without end.
func (r *Run) stageEnded() { r.ending.Do(func() { close(r.over) }) }

func (r *Run) isWatching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watching
}

// closeGate puts a gate before Stdin where os/exec would copy from it.
func (r *Run) closeGate() {
	if _, file := r.cmd.Stdin.(*os.File); r.gated && r.cmd.Stdin != nil && !file {
		r.gate = &gate{Reader: r.cmd.Stdin, failure: r.failure, copied: make(chan struct{})}
		r.cmd.Stdin = r.gate
	}
}

// kill is the default Cancel: it ends everything inside, and returns when that is
// so.
func (r *Run) kill() error {
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
func (r *Run) startError(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Path == r.stagePath() {
		return &fs.PathError{Op: pathErr.Op, Path: r.path, Err: pathErr.Err}
	}
	return err
}
