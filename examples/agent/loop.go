package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// mostRounds bounds what one task may cost.
const mostRounds = 100

// An agent is a model with tools that share a session.
type agent struct {
	options
	session *sandbox.Session
	user    *terminal
	talk    []message
	jobs    []job          // what was started in the background
	shown   map[string]int // violations that were told, and how often each had happened

	stop        atomic.Pointer[context.CancelFunc] // ends the call that runs
	interrupted atomic.Bool                        // in this task
}

func newAgent(session *sandbox.Session, user *terminal, o options, brief string) *agent {
	system := "You are a coding agent. You work with the tools in a sandbox, whose processes, files in /tmp and servers live on from call to call.\n" + brief
	return &agent{options: o, session: session, user: user, shown: map[string]int{}, talk: []message{{Role: "system", Content: system}}}
}

// work does one task, or those that the user types.
func (a *agent) work(ctx context.Context, task string) error {
	if task != "" {
		return a.turn(ctx, task)
	}
	for {
		task, err := a.user.ask(ctx, "task> ")
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && task != "" {
			err = a.turn(ctx, task)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.user.say("agent: " + err.Error()) // of the model; another task may go better
		}
	}
}

// turn asks the model, and carries out what it calls, until it calls nothing more.
func (a *agent) turn(ctx context.Context, task string) error {
	a.interrupted.Store(false)
	a.talk = append(a.talk, message{Role: "user", Content: task})
	for range mostRounds {
		reply, err := a.model.next(ctx, a.talk)
		if err != nil {
			return err
		}
		a.talk = append(a.talk, reply)
		a.user.show("< ", reply.Content)
		if len(reply.Calls) == 0 {
			return nil
		}
		for _, c := range reply.Calls {
			result, err := a.call(ctx, c)
			if err != nil {
				return err
			}
			a.talk = append(a.talk, message{Role: "tool", CallID: c.ID, Content: result})
		}
	}
	return fmt.Errorf("the model was not done after %d rounds", mostRounds)
}

// call carries out one call, and returns what the model is told. An error is the session's end; what is wrong with the call is
// the model's to mend.
func (a *agent) call(session context.Context, c call) (string, error) {
	a.user.say("* " + c.Function.Name + " " + c.Function.Arguments)
	t, known := tools[c.Function.Name]
	if !known {
		return fmt.Sprintf("error: there is no tool %q", c.Function.Name), nil
	}
	ctx, stop := context.WithTimeout(session, a.longest)
	defer stop()
	a.stop.Store(&stop)
	defer a.stop.Store(nil)
	result := &clipped{limit: a.output}
	err := t.run(a, ctx, []byte(c.Function.Arguments), result)
	var gone *policy.SessionError
	switch {
	case session.Err() != nil:
		return "", session.Err()
	case errors.As(err, &gone):
		return "", err
	case errors.Is(ctx.Err(), context.Canceled):
		return result.String() + "\n[the user has interrupted this call]", nil
	case ctx.Err() != nil:
		return result.String() + fmt.Sprintf("\n[ended after %v, the longest that a call may take]", a.longest), nil
	case err != nil:
		a.user.say("error: " + err.Error())
		return result.String() + "\nerror: " + err.Error(), nil
	}
	return result.String(), nil
}

// interrupt ends the call that runs. It reports false if none does, or if one was interrupted in this task before.
func (a *agent) interrupt() bool {
	stop := a.stop.Swap(nil)
	if stop == nil || a.interrupted.Swap(true) {
		return false
	}
	(*stop)()
	return true
}

// finish shows what has changed and what held. Git runs in the session, too: it obeys what a tool, or a checkout, may have left.
func (a *agent) finish(ctx context.Context) {
	status := a.session.CommandContext(ctx, "git", "status", "--short")
	if out, err := status.Output(); err == nil {
		a.user.say("changes:")
		a.user.show("| ", string(out))
	}
	if r := status.Report(); r != nil {
		a.user.show("", r.String())
	}
}
