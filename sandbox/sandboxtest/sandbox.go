package sandboxtest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// New makes a sandbox for the test, which closes it. A policy that is wrong, or
// that this host cannot hold, ends the test with the reason and the remedy. On an
// operating system without an engine the test is skipped.
func New(t testing.TB, p sandbox.Policy) *sandbox.Sandbox {
	t.Helper()
	return build(t, p, false)
}

// NewOrSkip is [New], but skips the test where this host cannot hold the policy.
// Such a test proves nothing on such a host.
func NewOrSkip(t testing.TB, p sandbox.Policy) *sandbox.Sandbox {
	t.Helper()
	return build(t, p, true)
}

func build(t testing.TB, p sandbox.Policy, skip bool) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(p)
	if err != nil {
		var lack *sandbox.UnsupportedError
		onThisHost := errors.As(err, &lack)
		if errors.Is(err, errors.ErrUnsupported) && (skip || !onThisHost) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Command makes a command in a [sandbox.Workspace] of its own, a new directory
// that is its Dir and is removed with the test. When the test ends, so does
// whatever is left of the command, and its report is checked as by [Check]. The
// test starts it, by [Run] or any of its methods.
func Command(t testing.TB, name string, arg ...string) *sandbox.Cmd {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { // before TempDir's, and when the command has ended
		os.Chmod(dir, 0o700)
		if root, err := os.OpenRoot(dir); err == nil {
			makeRemovable(root)
		}
	})
	cmd := New(t, sandbox.Workspace(dir)).CommandContext(t.Context(), name, arg...)
	cmd.Dir = dir
	Check(t, cmd)
	return cmd
}

// makeRemovable gives the user access to the directories in one, as "go mod download" leaves them without, and closes it. It follows no link out of it; what fails, the
// removal says.
func makeRemovable(dir *os.Root) {
	defer dir.Close()
	entries, _ := fs.ReadDir(dir.FS(), ".")
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir.Chmod(e.Name(), 0o700)
		if below, err := dir.OpenRoot(e.Name()); err == nil {
			makeRemovable(below)
		}
	}
}

// Check lets the test fail, when it ends, unless every bound that the command's
// policy wants was held. A bound named in may can be missing, as in
// [sandbox.Policy.May]. A command that was never started is not checked, nor is
// one that still runs when the test ends, since it may die before its evidence
// was read; it is waited for, so it needs a context that ends.
func Check(t testing.TB, cmd *sandbox.Cmd, may ...sandbox.Bound) {
	t.Helper()
	t.Cleanup(func() {
		t.Helper()
		if cmd.Process == nil {
			return
		}
		if cmd.ProcessState == nil {
			cmd.Wait()
			return
		}
		checkReport(t, cmd.Report(), may)
	})
}

// checkReport fails the test if a bound that is wanted was not seen to hold. A
// bound is only promised in the report of a run that ended before its tool was
// executed; it is unread where that is not known, which proves nothing.
func checkReport(t testing.TB, r *sandbox.Report, may []sandbox.Bound) {
	t.Helper()
	failed := len(r.Bounds) == 0
	for _, b := range r.Bounds {
		sound := b.State == sandbox.Held || b.State == sandbox.Partly || b.State == sandbox.Open || b.State == sandbox.Promised
		failed = failed || !sound && !slices.Contains(may, b.Bound)
	}
	if failed {
		t.Errorf("sandboxtest: not every bound held in this run:\n%v", r)
	}
}
