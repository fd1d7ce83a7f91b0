package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "learn", learn)

// learntTasks are done in base, of which the policy shows neither ground nor secret. Outside of the sandbox each succeeds.
var learntTasks = map[string]func(base string) error{
	"read a file":                  func(b string) error { return discard(os.ReadFile(b + "/ground/file")) },
	"read a file by a link":        func(b string) error { return discard(os.ReadFile(b + "/ground/to-file")) },
	"read a file through a link":   func(b string) error { return discard(os.ReadFile(b + "/ground/to-other/file")) },
	"look at a file":               func(b string) error { return discard(os.Stat(b + "/ground/file")) },
	"list a directory":             func(b string) error { return discard(os.ReadDir(b + "/ground/other")) },
	"execute a program":            func(b string) error { return execAt(unix.AT_FDCWD, b+"/ground/program") },
	"write a file":                 func(b string) error { return write(b+"/ground/file", 0) },
	"make a file":                  func(b string) error { return made(b + "/ground/other/new") },
	"write what is read":           func(b string) error { return write(b+"/read/0/file", 0) },
	"make a file where it is read": func(b string) error { return made(b + "/read/0/new") },
}

func discard[T any](_ T, err error) error { return err }

// learn does one task, and then what no task asks for.
func learn(args []string) {
	fmt.Println(learntTasks[args[0]](args[1]))
	_, err := os.ReadFile(args[1] + "/ground/beyond")
	fmt.Println(err != nil)
}

// TestKernelSuggestionsAllowWhatWasDenied: with what a denied run suggests the same run is denied nothing, and nothing
// else can be reached.
func TestKernelSuggestionsAllowWhatWasDenied(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		for _, name := range sortedKeys(learntTasks) {
			base := learningGround(t)
			p := attackPolicy(t, base, w)
			p.Files.Watch = true
			run := func() (string, *Report) {
				c := hostile(t, attackSandbox(t, p, w), "learn", name, base)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %s%v", name, out, err)
				}
				r := c.Report()
				r.Violations = slices.DeleteFunc(r.Violations, func(v Violation) bool {
					return !strings.HasPrefix(v.Path, base) || strings.HasSuffix(v.Path, "/beyond")
				})
				return string(out), r
			}
			out, r := run()
			s := r.Suggest()
			if strings.HasPrefix(out, "<nil>") && len(r.Violations) == 0 {
				if name != "look at a file" { // which nothing but a mount refuses
					t.Errorf("%s: succeeds without a suggestion", name)
				}
				continue
			}
			if len(s.Add) == 0 {
				t.Errorf("%s: %snothing is suggested: %v", name, out, r.Violations)
			}
			p = s.Apply(p)
			beyond := !slices.ContainsFunc(s.Add, func(a policy.Widening) bool { return a.Value == base+"/ground" })
			if out, r = run(); !strings.HasPrefix(out, "<nil>\n") || len(r.Violations) > 0 {
				t.Errorf("%s: with\n%sstill: %s%v", name, s, out, r.Violations)
			}
			if beyond != strings.HasSuffix(out, "true\n") {
				t.Errorf("%s: %smore than was suggested can be read: %s", name, s, out)
			}
		}
	})
}

func learningGround(t *testing.T) string {
	t.Helper()
	base := makeGrounds(t, 1)
	exe, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"file", "beyond", "program", "other/file"} {
		at := filepath.Join(base, "ground", f)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, exe, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for at, to := range map[string]string{"ground/to-file": "other/file", "ground/to-other": base + "/ground/other"} {
		if err := os.Symlink(to, filepath.Join(base, at)); err != nil {
			t.Fatal(err)
		}
	}
	return base
}
