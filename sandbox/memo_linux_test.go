package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// remembered says whether m gives the same result for both inputs.
func remembered(t *testing.T, m *memo, a, b compile.Input) bool {
	t.Helper()
	first, err := m.compile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.compile(b)
	if err != nil {
		t.Fatal(err)
	}
	return first == second
}

// keepableLike is an input like a preset's, with everything of its own.
func keepableLike() compile.Input {
	in := planInput(fixture.WorkspaceTree(), fixture.Host(), Policy{
		Files:    Files{HideNames: []string{".env"}},
		Limits:   Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(100)}},
		Syscalls: seccomp.Strict(),
	})
	in.List = nil
	return in
}

func TestWhatIsTheSameIsCompiledOnce(t *testing.T) {
	if !remembered(t, new(memo), keepableLike(), keepableLike()) {
		t.Error("two equal inputs were compiled twice")
	}
}

func TestWhatDiffersInAnythingIsCompiledAnew(t *testing.T) {
	for name, change := range map[string]func(*compile.Input){
		"a rule":                       func(in *compile.Input) { in.Tree.Entries[0].Kind = pathrule.CopyOnWrite },
		"a rule's place":               func(in *compile.Input) { in.Tree.Entries[0].Path += "x" },
		"a link that leads elsewhere":  func(in *compile.Input) { in.Tree.Links = append(in.Tree.Links, resolve.Link{Path: "/a", Target: "/b"}) },
		"a hidden name":                func(in *compile.Input) { in.Policy.Files.HideNames = []string{".envrc"} },
		"a protected name":             func(in *compile.Input) { in.Policy.Files.Protect.Add = []string{"x"} },
		"the network":                  func(in *compile.Input) { in.Policy.Network.Host = true },
		"a deadline":                   func(in *compile.Input) { in.Policy.Limits.WallClock = time.Second },
		"a limit behind a pointer":     func(in *compile.Input) { in.Policy.Limits.Rlimits.NoFile = rlimit.At(101) },
		"a name in a filter":           func(in *compile.Input) { in.Policy.Syscalls = in.Policy.Syscalls.Without("read") },
		"a bound that is open":         func(in *compile.Input) { in.Policy.Open = []Bound{policy.BoundTime} },
		"a bound that may be missing":  func(in *compile.Input) { in.Policy.May = []Bound{policy.BoundTime} },
		"what the host can do":         func(in *compile.Input) { in.Facts.Landlock.Value = 1 },
		"who the harness is":           func(in *compile.Input) { in.Facts.UID++ },
		"the limits in force":          func(in *compile.Input) { in.Rlimits[rlimit.Data].Hard-- },
		"how many threads are running": func(in *compile.Input) { in.Running++ },
		"a device":                     func(in *compile.Input) { in.Devices = in.Devices[1:] },
	} {
		in := keepableLike()
		change(&in)
		if remembered(t, new(memo), keepableLike(), in) {
			t.Errorf("%s differs, and it was not compiled anew", name)
		}
	}
}

// TestWhatIsListedOnTheWayIsCompiledAnew: without namespaces compile looks at
// directories, and so is not pure.
func TestWhatIsListedOnTheWayIsCompiledAnew(t *testing.T) {
	in := keepableLike()
	in.Facts.Namespaces, in.List = host.Fact{}, func(string) []resolve.Entry { return nil }
	in.Policy.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
	if m := new(memo); remembered(t, m, in, in) || len(m.kept) != 0 {
		t.Error("it was remembered")
	}
}

func TestAMemoStaysSmall(t *testing.T) {
	m := new(memo)
	for i := range 3 * mostKept {
		in := keepableLike()
		in.Policy.Limits.WallClock = time.Duration(i) * time.Second
		if _, err := m.compile(in); err != nil {
			t.Fatal(err)
		}
		if first := keepableLike(); !remembered(t, m, first, first) {
			t.Fatal("what is always used was forgotten")
		}
	}
	if len(m.kept) != mostKept {
		t.Errorf("%d kept, want %d", len(m.kept), mostKept)
	}
	large := keepableLike()
	large.Policy.Files.Make = []policy.File{{Path: "/a", Data: strings.Repeat("x", 1<<20)}}
	if remembered(t, m, large, large) {
		t.Error("a megabyte is kept")
	}
}

// TestACallersLaterChangesReachNothing writes to everything behind a pointer, a
// slice or a map of a policy after New has had it.
func TestACallersLaterChangesReachNothing(t *testing.T) {
	p := Policy{
		Files: Files{
			Read: []string{"/r"}, Write: []string{"/w"}, Hide: []string{"/h"}, HideNames: []string{"n"}, Private: []string{"/p"}, CopyOnWrite: []string{"/c"},
			Make: []policy.File{{Path: "/m"}}, Protect: policy.Protect{Add: []string{"a"}, Except: []string{"e"}},
		},
		Env:      Env{Pass: []string{"P"}, Set: map[string]string{"S": "s"}},
		Limits:   Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(100), Core: rlimit.At(1)}},
		Syscalls: seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"read"}, Args: []seccomp.Arg{{Index: 1}}}}},
		May:      []Bound{policy.BoundFiles}, Open: []Bound{policy.BoundTime},
	}
	mine := p.Clone()
	if !reflect.DeepEqual(mine, p) {
		t.Errorf("%+v is not the policy %+v", mine, p)
	}
	shares(t, "Policy", reflect.ValueOf(p), reflect.ValueOf(mine))
}

// shares fails for memory that two equal values both lead to.
func shares(t *testing.T, path string, a, b reflect.Value) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			shares(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		if a.Kind() == reflect.Slice {
			for i := range a.Len() {
				shares(t, fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
			}
		}
	}
}

// TestKernelDefaultSandboxSeesWhatIsThereNow changes the host between commands
// whose sandbox is made as the default one is; but /tmp, where this test's home
// lies, is not taken for a place that anybody can write to.
func TestKernelDefaultSandboxSeesWhatIsThereNow(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			workspaceHere(t)
			home := os.Getenv("HOME")
			ws, tools := filepath.Join(home, "ws"), filepath.Join(home, "bin")
			t.Chdir(ws)
			t.Setenv("PATH", tools+":/usr/bin:/bin")
			for _, step := range []struct {
				name string
				do   func() error
				want string
			}{
				{"nothing", func() error { return nil }, ""},
				{"nothing, again", func() error { return nil }, ""},
				{"a directory of PATH appears", func() error { return os.Mkdir(tools, 0o755) }, tools},
				{"a secret appears in it", func() error { return os.Mkdir(filepath.Join(tools, "secret"), 0o700) }, tools + " secret"},
				{"it becomes a link to another directory", func() error {
					if err := os.RemoveAll(tools); err != nil {
						return err
					}
					return os.Symlink("/usr/lib", tools)
				}, tools + " " + strings.Join(namesIn(t, "/usr/lib"), " ")},
				{"it goes away", func() error { return os.RemoveAll(tools) }, ""},
				{"the workspace is another directory of the same name", func() error {
					if err := os.Rename(ws, ws+".old"); err != nil {
						return err
					}
					if err := os.Mkdir(ws, 0o755); err != nil {
						return err
					}
					return os.Chdir(ws)
				}, ""},
				{"a variable appears", func() error { return os.Setenv("MARK", "mark") }, "mark"},
			} {
				if err := step.do(); err != nil {
					t.Fatal(err)
				}
				s, err := New(presets.New(ws, os.Getenv, nil).Policy(true))
				if err != nil {
					t.Fatal(err)
				}
				c := s.Command("sh", "-c", `[ -d "$1" ] && echo "$1" $(ls "$1"); echo $MARK; [ -z "$(ls)" ] || echo the old workspace; : >here && rm here`, "sh", tools)
				out, err := c.CombinedOutput()
				if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != step.want {
					t.Errorf("%s: %q, want %q, %v", step.name, got, step.want, err)
				}
			}
		})
	})
}

// TestKernelSandboxesAreMadeAtTheSameTime is for the race detector.
func TestKernelSandboxesAreMadeAtTheSameTime(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
		dirs := []string{t.TempDir(), t.TempDir()}
		var wait sync.WaitGroup
		for i := range 16 {
			wait.Go(func() {
				s, err := New(Workspace(dirs[i%2]))
				if err != nil {
					t.Error(err)
				} else if !strings.Contains(s.Explain(), dirs[i%2]) || strings.Contains(s.Explain(), dirs[1-i%2]) {
					t.Error("a sandbox has the plan of another")
				}
			})
		}
		wait.Wait()
	})
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.Command("ls", dir).Output() // in the order that ls has
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
