package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelRootsWorkspaceOfAnotherUser: where root's tool cannot write to the workspace, Explain and the report say so, with the remedy;
// where it can, by its owner, its group or its mode, they do not.
func TestKernelRootsWorkspaceOfAnotherUser(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.IsRoot)
		const says = "belongs to uid 1000: the tool is root without capabilities and cannot write there; run the harness as that user (Docker: --user 1000:1001)"
		for _, test := range []struct {
			name     string
			uid, gid int
			mode     os.FileMode
			writes   bool
		}{
			{"another user's", 1000, 1001, 0o755, false},
			{"another user's, for a group that is not root's", 1000, 1001, 0o775, false},
			{"another user's, for root's group", 1000, os.Getegid(), 0o775, true},
			{"another user's, for all", 1000, 1001, 0o777, true},
			{"root's", 0, 1001, 0o700, true},
		} {
			p := workspaceHere(t)
			if err := os.Chown(p.Dir, test.uid, test.gid); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(p.Dir, test.mode); err != nil {
				t.Fatal(err)
			}
			s, err := New(p.InContainer())
			if err != nil {
				t.Fatal(err)
			}
			c := s.Command("sh", "-c", ": >file && rm file")
			c.Dir = p.Dir
			err = c.Run()
			if (err == nil) != test.writes || strings.Contains(c.Report().String(), says) == test.writes || strings.Contains(s.Explain(), says) == test.writes {
				t.Errorf("%s: %v\n%s", test.name, err, c.Report())
			}
		}
	})
}
