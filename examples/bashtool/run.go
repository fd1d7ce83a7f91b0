package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// run runs one command to its end.
func (t *tool) run(ctx context.Context, q request) response {
	limit := t.timeout
	if q.TimeoutMS > 0 {
		limit = time.Duration(min(q.TimeoutMS, t.longest.Milliseconds())) * time.Millisecond
	}
	limited, cancel := context.WithTimeout(ctx, min(limit, t.longest))
	defer cancel()

	command, note, err := t.begin(ctx)
	if err != nil {
		return response{ID: q.ID, Exit: -1, Error: err.Error()}
	}
	cmd := command(limited, "bash", "-c", q.Command)
	cmd.Dir = t.cwd(q.Cwd) // where it starts; what it may touch was decided before
	printed := clipped{limit: t.maxOutput}
	if t.single {
		cmd.Stdout, cmd.Stderr = &printed, &printed
	}
	began := time.Now()
	err = cmd.Run()
	r := response{ID: q.ID, Note: note, DurationMS: time.Since(began).Milliseconds(), Report: cmd.Report()}
	if !t.single {
		t.keep(cmd, &printed, &r)
	}
	if ended := (*policy.SessionError)(nil); errors.As(err, &ended) {
		t.session = nil
	}

	r.Output = printed.String()
	r.TimedOut = errors.Is(limited.Err(), context.DeadlineExceeded)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.Exit, r.Signal = ending(exit)
	case r.TimedOut:
		r.Exit = -1
	default:
		r.Exit, r.Error = -1, err.Error()
	}
	return r
}

// cwd is the directory that a request names, the workspace if none.
func (t *tool) cwd(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(t.workspace, dir)
}

// ending is how bash writes an end: 128 and the number of the signal.
func ending(err *exec.ExitError) (status int, signal string) {
	if w, ok := err.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), w.Signal().String()
	}
	return err.ExitCode(), ""
}
