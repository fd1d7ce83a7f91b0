// Package sandboxtest runs commands inside a sandbox from within "go test".
//
//	func TestSubmission(t *testing.T) {
//		cmd := sandboxtest.Command(t, "sh", "-c", submission) // in an empty workspace
//		got := sandboxtest.Run(t, cmd)
//		if got.Err != nil || got.Stdout != "42\n" {
//			t.Errorf("it printed %q and ended with %v", got.Stdout, got.Err)
//		}
//	}
//
// [Command] has no network and no deadline. Another policy takes a line more, and its
// workspace stays the test's to fill and to name:
//
//	p := sandbox.WorkspaceNet(t.TempDir(), "modules.example.com:443")
//	p.Limits.WallClock = time.Minute
//	cmd := sandboxtest.New(t, p).Command("go", "test", "./...")
//	cmd.Dir = p.Files.Write[0]
//
// What the tool does is the test's to judge. What the sandbox does is judged
// here: a policy that this host cannot hold, a tool that cannot be started, and
// a report in which a bound is not held all fail the test.
//
// # Limits
//
// Where package sandbox has no engine for the operating system, tests skip and
// say so. On Linux they never do, unless they ask for it by [NewOrSkip].
package sandboxtest
