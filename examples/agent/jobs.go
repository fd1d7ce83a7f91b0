package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A job is a command that goes on after the call that has started it.
type job struct {
	*sandbox.Cmd
	script string
	ended  context.Context // with what it ended
}

var errDone = errors.New("exit status 0")

// commands are those of the jobs.
func (a *agent) commands() (list []*sandbox.Cmd) {
	for _, j := range a.jobs {
		list = append(list, j.Cmd)
	}
	return list
}

// background starts a command that lives on until the session ends.
func background(a *agent, ctx context.Context, in bashCall, result io.Writer) error {
	cmd := a.session.Command("bash", "-c", in.Script) // without Stdout, the session keeps what it prints
	cmd.SysProcAttr = withoutTerminal()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended, end := context.WithCancelCause(context.Background())
	go func() { end(cmp.Or(cmd.Wait(), errDone)) }()
	a.jobs = append(a.jobs, job{cmd, in.Script, ended})
	if in.Port != 0 {
		waiting, stop := context.WithCancelCause(ctx)
		defer context.AfterFunc(ended, func() { stop(fmt.Errorf("job %d has ended (%w)", cmd.ID(), context.Cause(ended))) })()
		if err := a.session.WaitPort(waiting, in.Port); err != nil {
			return errors.Join(err, context.Cause(waiting))
		}
	}
	_, err := fmt.Fprintf(result, "job %d runs", cmd.ID())
	return err
}

// about tells of the jobs.
func about(a *agent, ctx context.Context, in struct {
	Job    int
	Offset int64
	Wait   string
	End    bool
}, result io.Writer) error {
	known := in.Job == 0
	for _, j := range a.jobs {
		if known = known || j.ID() == in.Job; in.Job == 0 {
			fmt.Fprintf(result, "job %d: %.60q, %v\n", j.ID(), j.script, cmp.Or(context.Cause(j.ended), errors.New("runs")))
		}
		if in.Wait != "" && j.ID() == in.Job {
			if err := wait(ctx, j, in.Wait); err != nil {
				return err
			}
		}
		if in.End && j.ID() == in.Job {
			if err := j.Cancel(); err != nil && !errors.Is(err, os.ErrProcessDone) { // all of its processes are dead when it returns
				return err
			}
			<-j.ended.Done()
		}
	}
	if !known {
		return fmt.Errorf("there is no job %d", in.Job)
	}
	if in.Job == 0 {
		return nil
	}
	o, err := a.session.Output(in.Job, in.Offset)
	if err != nil {
		return err
	}
	n := min(len(o.Data), a.output)
	_, err = fmt.Fprintf(result, "%s\n[go on with offset %d]", o.Data[:n], o.Next-int64(len(o.Data)-n))
	return err
}

// wait waits until a job has printed what matches.
func wait(ctx context.Context, j job, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err == nil {
		_, err = j.WaitOutput(ctx, re)
	}
	return err
}
