package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelFilesThatGoWithTheSandboxAreReported: a file in the private HOME, or beside the workspace in a directory that is private, is most likely one that
// the tool's user wants to keep. What lasts, what is usual there and what the sandbox itself has put there is not reported. Of a
// session it is said when that is over.
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
				`echo >~/"$(printf 'a\nb')"`:       filepath.Join(home, `a\nb`),
				"cat ~/shown; echo hi >out; echo hi >/tmp/t; echo hi >~/.cache-of-x; mkdir ~/d; echo >~/d/f; echo >~/g; rm ~/g": "",
				"rm -rf ../q; mkdir ../q; ln -s /etc/passwd ~/l; ln -s . ../m":                                                  "",
			} {
				for _, way := range []string{"single", "prepared", "session"} {
					var mu sync.Mutex
					ended := map[bool][]string{} // what the events have, of the session and of commands
					p := Workspace(ws)
					p.Files.Read = append(p.Files.Read, shown)
					if way != "prepared" {
						p.Observe = func(e policy.Event) {
							mu.Lock()
							defer mu.Unlock()
							if e.Ended != nil {
								session := e.Run == e.Session
								ended[session] = append(ended[session], e.Ended.Discarded...)
							}
						}
					}
					s, err := New(p)
					if err != nil {
						t.Fatal(err)
					}
					c, closeSession := s.Command("sh", "-c", script), func() error { return nil }
					switch way {
					case "prepared":
						if err := s.Prepare(1); err != nil {
							t.Fatal(err)
						}
					case "session":
						n, err := s.Open(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						c, closeSession = n.Command("sh", "-c", script), n.Close
					}
					c.Dir = ws
					out, err := c.CombinedOutput()
					if err != nil && !strings.HasSuffix(script, "exit 3") {
						t.Errorf("%s: %s: %v: %s", way, script, err, out)
					}
					notes := func() string { return strings.Join(c.Report().Bound(policy.BoundFiles).Notes, "\n") }
					if way == "session" && strings.Contains(notes(), "discarded") {
						t.Errorf("%s: said while the session lives: %s", script, notes())
					}
					if err := closeSession(); err != nil {
						t.Error(err)
					}
					if said := strings.Contains(notes(), "discarded"); said != (want != "") || !strings.Contains(notes(), want) {
						t.Errorf("%s: %s: want %q: %s", way, script, want, notes())
					}
					mu.Lock()
					if told := errtext.Printable(strings.Join(ended[way == "session"], ", ")); way != "prepared" && (told != want || len(ended[way != "session"]) > 0) {
						t.Errorf("%s: %s: want %q in the event: %v", way, script, want, ended)
					}
					mu.Unlock()
					s.Close()
				}
			}
		})
	})
}
