package runner

import (
	"context"
	"os/exec"

	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Wrap makes a command that was made elsewhere and has not been started run inside the sandbox, whichever
// code and method starts it. Its Path becomes the stage's, and the tool is what Path was.
func (s *Sandbox) Wrap(cmd *exec.Cmd) error {
	return wrap(cmd, func(ctx context.Context, tool func() Tool) *Run { return New(ctx, s, nil, tool) })
}

// Wrap makes a command that was made elsewhere run inside the session.
func (n *Session) Wrap(cmd *exec.Cmd) error { return wrap(cmd, n.New) }

func wrap(cmd *exec.Cmd, run func(context.Context, func() Tool) *Run) error {
	if cmd == nil {
		return &policy.PolicyError{Field: "cmd", Problem: "is nil", Remedy: "make it with exec.Command"}
	}
	if cmd.Process != nil || cmd.ProcessState != nil {
		return &policy.PolicyError{Field: "cmd", Problem: "has been started already", Remedy: "wrap a command before Start"}
	}
	ctx, err := launch.ContextOf(cmd)
	if err != nil {
		return err
	}
	if Of(cmd) != nil {
		return &policy.PolicyError{Field: "cmd", Problem: "is in a sandbox already", Remedy: "wrap a command once"}
	}
	if ctx == nil && cmd.Cancel != nil {
		return &policy.PolicyError{Field: "cmd.Cancel", Problem: "is set, and the command was not made with CommandContext", Remedy: "make it with exec.CommandContext"}
	}
	custom := ctx != nil && !launch.IsDefaultCancel(cmd)
	if ctx == nil {
		ctx = context.Background()
	}
	path := cmd.Path
	r := run(ctx, func() Tool { return Tool{Path: path} })
	if err := launch.SetContext(cmd, r); err != nil {
		return err
	}
	r.cmd, cmd.Path = cmd, r.stagePath()
	if !custom {
		cmd.Cancel = r.kill
	}
	return nil
}

// Of returns the run of a command that is in a sandbox, wrapped or embedded; nil: it is in none.
func Of(cmd *exec.Cmd) *Run {
	if ctx, err := launch.ContextOf(cmd); err == nil {
		if r, ok := ctx.(*Run); ok && r.cmd == cmd {
			return r
		}
	}
	return nil
}
