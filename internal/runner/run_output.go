package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ID is the number of a session's command; 0: it is none, or was not started.
func (r *Run) ID() int {
	if p := r.printed.Load(); p != nil {
		return p.id
	}
	return 0
}

// WaitOutput waits for a match in what the command prints.
func (r *Run) WaitOutput(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	if ctx == nil || pattern == nil {
		panic("nil Context or Regexp")
	}
	if r.session == nil || r.plain {
		return "", &policy.SessionError{Reason: "is missing: output is kept for the commands of one alone", Remedy: "make the command by Session.Command", Err: errors.ErrUnsupported}
	}
	p := r.printed.Load()
	switch {
	case p == nil:
		return "", fmt.Errorf("sandbox: the command has not been started: %w", os.ErrInvalid)
	case !p.log.Seen():
		return "", unseen()
	}
	if err := r.session.over(nil); err != nil {
		return "", err
	}
	m, err := p.log.Wait(ctx, pattern)
	if errors.Is(err, io.EOF) {
		if over := r.session.over(nil); over != nil {
			return "", over
		}
	}
	return m, err
}
