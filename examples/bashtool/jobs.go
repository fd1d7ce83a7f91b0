package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A job is a command that has left processes.
type job struct {
	Job       int      `json:"job"`
	Processes []string `json:"processes"` // their command lines
}

// keep takes what a command of the session has printed, which the session keeps, and remembers the command if it has left something.
func (t *tool) keep(cmd *sandbox.Cmd, printed *clipped, r *response) {
	r.Job = cmd.ID()
	if o, err := t.session.Output(r.Job, 0); err == nil {
		if r.Next, r.Dropped = o.Next, o.Dropped; o.Dropped > 0 {
			fmt.Fprintf(printed, "[... the first %d bytes are not kept ...]\n", o.Dropped)
		}
		printed.Write(o.Data)
	}
	t.commands[r.Job] = cmd
	_, _ = t.jobs() // forgets those that have left nothing
}

// jobs lists the commands that have processes.
func (t *tool) jobs() ([]job, error) {
	processes, err := t.session.Processes()
	if err != nil {
		return nil, err
	}
	var list []job
	at := func(id int) int { return slices.IndexFunc(list, func(j job) bool { return j.Job == id }) }
	for _, p := range processes {
		if at(p.ID) < 0 {
			list = append(list, job{Job: p.ID})
		}
		j := &list[at(p.ID)]
		j.Processes = append(j.Processes, strings.ToValidUTF8(strings.Join(p.Args, " "), "\uFFFD"))
	}
	maps.DeleteFunc(t.commands, func(id int, _ *sandbox.Cmd) bool { return at(id) < 0 })
	return list, nil
}

// about answers a request about jobs.
func (t *tool) about(q request) (r response, err error) {
	r.ID = q.ID
	if t.session == nil {
		return r, errors.New("there is no session, and no job")
	}
	if q.Job == 0 {
		r.Jobs, err = t.jobs()
		return r, err
	}
	if q.End {
		cmd := t.commands[q.Job]
		if cmd == nil {
			return r, fmt.Errorf("job %d does not run", q.Job)
		}
		if err := cmd.Cancel(); err != nil && !errors.Is(err, os.ErrProcessDone) { // it returns when all of its processes are dead
			return r, err
		}
	}
	o, err := t.session.Output(q.Job, q.Offset)
	if err != nil {
		return r, err
	}
	n := min(len(o.Data), t.maxOutput)
	r.Output, r.Job = strings.ToValidUTF8(string(o.Data[:n]), "\uFFFD"), q.Job
	r.Next, r.Dropped, r.Ended = o.Next-int64(len(o.Data)-n), o.Dropped, o.Ended && n == len(o.Data)
	return r, nil
}
