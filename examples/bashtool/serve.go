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
	case q.Command == "":
		err = errors.New(`the request has no "command"`)
	case q.TimeoutMS < 0:
		err = errors.New(`"timeout_ms" is negative`)
	default:
		return t.run(ctx, q)
	}
	return response{ID: q.ID, Exit: -1, Error: err.Error()}
}
