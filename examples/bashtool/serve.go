package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A request is one line of input.
type request struct {
	ID        json.RawMessage `json:"id"`
	Command   string          `json:"command"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	Cwd       string          `json:"cwd,omitempty"`

	Jobs   bool  `json:"jobs,omitempty"`   // in the place of a command: list them
	Job    int   `json:"job,omitempty"`    // or what this one has printed
	Offset int64 `json:"offset,omitempty"` // from here on
	End    bool  `json:"end,omitempty"`    // after it was ended
}

// A response is one line of output.
type response struct {
	ID         json.RawMessage `json:"id"`
	Output     string          `json:"output"`
	Exit       int             `json:"exit"` // -1: it did not run
	Note       string          `json:"note,omitempty"`
	Signal     string          `json:"signal,omitempty"`
	TimedOut   bool            `json:"timed_out"`
	DurationMS int64           `json:"duration_ms"`
	Error      string          `json:"error,omitempty"`
	Report     *sandbox.Report `json:"report,omitempty"`

	Job     int   `json:"job,omitempty"`     // the command's number in its session
	Next    int64 `json:"next,omitempty"`    // the offset of what its jobs print from now on
	Dropped int64 `json:"dropped,omitempty"` // bytes before the output that are not kept any more
	Ended   bool  `json:"ended,omitempty"`   // of a job: it prints nothing more
	Jobs    []job `json:"jobs,omitempty"`
}

// maxLine bounds a request.
const maxLine = 8 << 20

// serve answers requests until the input or ctx ends.
func (t *tool) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for ctx.Err() == nil && lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := encoder.Encode(t.answer(ctx, lines.Bytes())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answer never fails: what is wrong with a request is in its response.
func (t *tool) answer(ctx context.Context, line []byte) response {
	var q request
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields() // a misspelt timeout must not be no timeout
	err := d.Decode(&q)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	switch {
	case err != nil:
		err = fmt.Errorf("the request cannot be read: %w", err)
	case q.TimeoutMS < 0 || q.Offset < 0 || q.Job < 0:
		err = errors.New("a number is negative")
	case q.Command == "" && (q.Jobs || q.Job > 0):
		var r response
		if r, err = t.about(q); err == nil {
			return r
		}
	case q.Command == "" || q.Jobs || q.Job > 0:
		err = errors.New(`the request has not one of "command", "jobs" and "job"`)
	default:
		return t.run(ctx, q)
	}
	return response{ID: q.ID, Exit: -1, Error: err.Error()}
}
