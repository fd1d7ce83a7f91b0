package sandboxtest

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// MaxOutput is how many bytes of each output [Run] keeps. What untrusted code
// prints beyond that is read and dropped.
const MaxOutput = 1 << 20

// A Result is how a run ended.
type Result struct {
	Stdout, Stderr string // empty if the test has set the command's own
	Truncated      bool   // one of them was longer than MaxOutput
	Code           int    // the exit status; -1: a signal ended it
	// Err is nil for status 0, and else what Wait returned: an [*exec.ExitError],
	// around which [sandbox.ErrDeadline] says that the policy's time was up.
	Err    error
	Report *sandbox.Report
}

// Run starts a command, waits for its end and checks its report as [Check] does.
// How the tool ends does not fail the test; a tool that cannot be started does.
func Run(t testing.TB, cmd *sandbox.Cmd, may ...sandbox.Bound) Result {
	t.Helper()
	var stdout, stderr capped
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("sandboxtest: %v was not started: %v", cmd, err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, sandbox.ErrDeadline) {
		t.Fatalf("sandboxtest: %v: %v", cmd, err)
	}
	r := Result{
		Stdout: stdout.kept.String(), Stderr: stderr.kept.String(), Truncated: stdout.more || stderr.more,
		Code: cmd.ProcessState.ExitCode(), Err: err, Report: cmd.Report(),
	}
	checkReport(t, r.Report, may)
	return r
}

// capped is a buffer that takes MaxOutput bytes and says that it took them all.
type capped struct {
	kept bytes.Buffer // not embedded: its ReadFrom would take everything
	more bool
}

// Write never fails: the tool must not notice.
func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), MaxOutput-c.kept.Len())
	c.more = c.more || keep < len(p)
	c.kept.Write(p[:keep])
	return len(p), nil
}
