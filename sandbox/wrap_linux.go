package sandbox

import (
	"context"
	"os/exec"

	"github.com/holdfast-dev/holdfast/internal/stage/launch"
)

// Wrap makes a command that was made elsewhere, as a literal or by
// [exec.Command] or [exec.CommandContext], run inside the sandbox, whichever code
// and method starts it. It must not have been started; its pipes may have been
// made already. Its Path becomes the stage's, and the tool is what Path was.
//
// [ReportOf] returns the report of a wrapped command.
func (s *Sandbox) Wrap(cmd *exec.Cmd) error {
	if cmd == nil {
		return &PolicyError{Field: "cmd", Problem: "is nil", Remedy: "make it with exec.Command"}
	}
	if cmd.Process != nil || cmd.ProcessState != nil {
		return &PolicyError{Field: "cmd", Problem: "has been started already", Remedy: "wrap a command before Start"}
	}
	ctx, err := launch.ContextOf(cmd)
	if err != nil {
		return err
	}
	if r, ok := ctx.(*run); ok && r.cmd == cmd {
		return &PolicyError{Field: "cmd", Problem: "is in a sandbox already", Remedy: "wrap a command once"}
	}
	if ctx == nil && cmd.Cancel != nil {
		return &PolicyError{Field: "cmd.Cancel", Problem: "is set, and the command was not made with CommandContext", Remedy: "make it with exec.CommandContext"}
	}
	custom := ctx != nil && !launch.IsDefaultCancel(cmd)
	if ctx == nil {
		ctx = context.Background()
	}
	r := newRun(ctx, s, nil)
	path := cmd.Path
	r.tool = func() string { return path }
	if err := launch.SetContext(cmd, r); err != nil {
		return err
	}
	r.cmd, cmd.Path = cmd, r.stagePath()
	if !custom {
		cmd.Cancel = r.kill
	}
	return nil
}

// ReportOf returns the report of a command that [Sandbox.Wrap] has put into a
// sandbox, or of a Cmd's embedded exec.Cmd; nil: it is in none.
func ReportOf(cmd *exec.Cmd) *Report {
	if ctx, err := launch.ContextOf(cmd); err == nil {
		if r, ok := ctx.(*run); ok && r.cmd == cmd {
			return r.report()
		}
	}
	return nil
}
