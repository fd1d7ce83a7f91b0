package main

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// begin returns what makes a command: of the session, which begins with the first one and anew if it has ended, or of the
// sandbox where this host has no sessions. The note says what the model would not expect.
func (t *tool) begin(ctx context.Context) (command func(ctx context.Context, name string, arg ...string) *sandbox.Cmd, note string, err error) {
	if t.single {
		return t.sandbox.CommandContext, "", nil
	}
	if t.session != nil {
		return t.session.CommandContext, "", nil
	}
	again := t.opened
	session, err := t.sandbox.Open(ctx)
	if lacks := (*policy.SessionError)(nil); errors.As(err, &lacks) && errors.Is(err, errors.ErrUnsupported) {
		t.single = true
		return t.sandbox.CommandContext, "Background jobs, /tmp and HOME do not last beyond their command: " + err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	t.session, t.opened = session, true
	clear(t.commands)
	if again {
		note = "The sandbox had ended with all background jobs and is a new one: /tmp and HOME are empty."
	}
	return session.CommandContext, note, nil
}

// close ends the session.
func (t *tool) close() error {
	if t.session == nil {
		return nil
	}
	return t.session.Close()
}
