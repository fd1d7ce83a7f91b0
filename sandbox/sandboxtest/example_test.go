package sandboxtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// A script that was handed in, run in an empty workspace. The test fails if a
// bound did not hold; what the script did is the test's to judge.
func ExampleRun() {
	_ = func(t *testing.T) { // TestSubmission
		cmd := sandboxtest.Command(t, "sh", "-c", `read a b; echo $((a + b))`)
		cmd.Stdin = strings.NewReader("2 3\n")
		got := sandboxtest.Run(t, cmd)
		if got.Code != 0 || got.Stdout != "5\n" {
			t.Errorf("status %d, %q\n%s", got.Code, got.Stdout, got.Stderr)
		}
	}
}

// The ways in which a run can end, and what is kept of its output.
func ExampleResult() {
	_ = func(t *testing.T) { // TestEndless
		p := sandbox.Workspace(t.TempDir())
		p.Limits.WallClock = 5 * time.Second
		cmd := sandboxtest.New(t, p).Command("yes")
		cmd.Dir = p.Files.Write[0]
		var got sandboxtest.Result = sandboxtest.Run(t, cmd)
		switch {
		case errors.Is(got.Err, sandbox.ErrDeadline):
			t.Log("out of time")
		case got.Truncated:
			t.Logf("it printed more than %d bytes", sandboxtest.MaxOutput)
		}
		if time := got.Report.Bound(policy.BoundTime); time.State != sandbox.Held {
			t.Errorf("the deadline is %s", time.State)
		}
	}
}

// A command that the test starts itself, because it talks to it. What is left of
// it dies with the test's context, and its report is checked at the end.
func ExampleCheck() {
	_ = func(t *testing.T) { // TestServer
		s := sandboxtest.NewOrSkip(t, sandbox.ReadOnly(t.TempDir())) // where the host cannot hold it, there is nothing to test
		cmd := s.CommandContext(t.Context(), "cat")
		cmd.Dir = "/tmp"
		sandboxtest.Check(t, cmd, policy.BoundResources) // that bound may be missing
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
