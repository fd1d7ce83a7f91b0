package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelFilesThatGoWithTheSandboxAreReported: a file in the private HOME, or beside the workspace in a directory that is private, is most likely one that
// the tool's user wants to keep. What lasts, what is usual there and what the sandbox itself has put there is not reported.
func TestKernelFilesThatGoWithTheSandboxAreReported(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			home := os.Getenv("HOME")
			ws, shown := filepath.Join(home, "src", "p"), filepath.Join(home, "shown")
			if err := os.MkdirAll(ws, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(shown, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
			for script, want := range map[string]string{
				"echo hi >../out":                  filepath.Join(home, "src", "out"),
				"echo hi >~/x; echo hi >../out":    filepath.Join(home, "src", "out") + ", " + filepath.Join(home, "x"),
				"echo hi >~/a; mv ~/a ~/b; exit 3": filepath.Join(home, "b"),
				`echo >~/"$(printf 'a\nb')"`:       "a\\nb",
				"cat ~/shown; echo hi >out; echo hi >/tmp/t; echo hi >~/.cache-of-x; mkdir ~/d; echo >~/d/f; echo >~/g; rm ~/g": "",
				"rm -rf ../q; mkdir ../q; ln -s /etc/passwd ~/l; ln -s . ../m":                                                  "",
			} {
				p := Workspace(ws)
				p.Files.Read = append(p.Files.Read, shown)
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				c := s.Command("sh", "-c", script)
				c.Dir = ws
				out, err := c.CombinedOutput()
				if err != nil && !strings.HasSuffix(script, "exit 3") {
					t.Errorf("%s: %v: %s", script, err, out)
				}
				notes := strings.Join(c.Report().Bound(policy.BoundFiles).Notes, "\n")
				if said := strings.Contains(notes, "discarded"); said != (want != "") || !strings.Contains(notes, want) {
					t.Errorf("%s: want %q: %s", script, want, notes)
				}
				s.Close()
			}
		})
	})
}
