package commandtest

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// The differential test runs one table of cases through exec.Command and
// through a sandbox's Command and compares everything that a caller can
// observe. Whatever differs is in differences, with its reason, and in the
// case, with both values.

// methods are what both kinds of command do themselves.
type methods interface {
	Start() error
	Wait() error
	Run() error
	Output() ([]byte, error)
	CombinedOutput() ([]byte, error)
	String() string
	Environ() []string
}

// A command is one of either kind: its fields, its methods, its path.
type command struct {
	*exec.Cmd
	do   methods
	path *string
}

// Methods that both kinds have and that are not the embedded Cmd's.
func (c *command) Start() error                    { return c.do.Start() }
func (c *command) Wait() error                     { return c.do.Wait() }
func (c *command) Run() error                      { return c.do.Run() }
func (c *command) Output() ([]byte, error)         { return c.do.Output() }
func (c *command) CombinedOutput() ([]byte, error) { return c.do.CombinedOutput() }
func (c *command) String() string                  { return c.do.String() }
func (c *command) Environ() []string               { return c.do.Environ() }

// A maker makes commands of one kind; a nil context: without one.
type maker func(ctx context.Context, name string, arg []string) *command

// A world is where a case runs: a directory of its own, which is the working
// directory, and a way to make commands.
type world struct {
	*testing.T
	dir  string
	make maker
	seen map[string]string
}

func (w *world) command(name string, arg ...string) *command { return w.make(nil, name, arg) }

func (w *world) sh(script string, arg ...string) *command {
	return w.command("/bin/bash", append([]string{"-c", script, "bash"}, arg...)...)
}

// saw notes one observation.
func (w *world) saw(key string, value any) {
	if _, twice := w.seen[key]; twice {
		w.Fatalf("%q is observed twice", key)
	}
	w.seen[key] = fmt.Sprint(value)
}

func (w *world) file(name, text string, mode fs.FileMode) string {
	w.Helper()
	p := filepath.Join(w.dir, name)
	w.must(os.WriteFile(p, []byte(text), mode))
	w.must(os.Chmod(p, mode))
	return p
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// A diff is a known difference: which one, in what observation, and the
// values.
type diff struct{ which, key, plain, boxed string }

// A diffCase is one way to use a command, and what is known to differ: for
// everybody, and for root alone.

type diffCase struct {
	name    string
	run     func(w *world)
	differs []diff
	root    []diff
}

// cancelSet is the difference of every case that looks at the fields.
var cancelSet = diff{"cancel", "field Cancel is nil", "true", "false"}

func TestKernelDifferential(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 15 * time.Minute}, func(t *testing.T) {
			dir := openDir(t)
			plainEnvironment(t)
			s, err := sandbox.New(toolPolicy(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			warm(t, s)
			used, sess := map[string]bool{}, openSession(t, s, as)
			for _, c := range slices.Concat(startCases, environCases, stdioCases, endCases, stopCases, contextCases, attributeCases) {
				t.Run(c.name, func(t *testing.T) {
					plain := compare(t, s, dir, c, used)
					if sess != nil {
						t.Run("prepared", func(t *testing.T) {
							judge(t, prepared(c), plain, observe(t, dir, c, boxedCommand(prepare(t, s))), map[string]bool{})
						})
					}
					if sess != nil && !strings.HasPrefix(c.name, "Credential") {
						t.Run("in a session", func(t *testing.T) {
							judge(t, inSession(c), plain, observe(t, dir, c, boxedCommand(sess)), map[string]bool{})
						})
					}
				})
			}
			for which := range differences {
				if !used[which] && (as == kerneltest.Root || which != "capabilities") {
					t.Errorf("no case shows the difference %q", which)
				}
			}
		})
	})
}

// TestKernelDifferentialOfTheHarnesssFile: a stage that has a Go runtime around it
// handles signals, terminals and ends no differently.
func TestKernelDifferentialOfTheHarnesssFile(t *testing.T) {
	kerneltest.Heavy(t)
	child := kerneltest.Child{As: kerneltest.Ordinary, Timeout: 5 * time.Minute, Without: []kerneltest.Feature{kerneltest.MemfdExec}}
	kerneltest.InChild(t, child, func(t *testing.T) {
		dir := openDir(t)
		plainEnvironment(t)
		if image := sandbox.Probe().Image; image.Yes() {
			t.Fatal(image)
		}
		s, err := sandbox.New(toolPolicy(dir))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		warm(t, s)
		for _, c := range slices.Concat(endCases, stopCases, attributeCases) {
			t.Run(c.name, func(t *testing.T) { compare(t, s, dir, c, map[string]bool{}) })
		}
	})
}

// openDir makes a working directory that every user can reach.
func openDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "holdfast")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Chdir(dir)
	return dir
}

// plainEnvironment makes the environment a small one with no secrets, so that
// nothing of it is withheld.
func plainEnvironment(t *testing.T) {
	path := os.Getenv("PATH")
	tmp := os.TempDir()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		t.Setenv(name, "") // puts it back afterwards
	}
	os.Clearenv()
	for _, kv := range [][2]string{{"PATH", path}, {"TMPDIR", tmp}, {"LANG", "C.UTF-8"}, {"GORACE", "atexit_sleep_ms=0"}, {"HOME", tmp}} {
		t.Setenv(kv[0], kv[1])
	}
}

// compare runs a case both ways, and returns what was observed of os/exec.
func compare(t *testing.T, s commander, dir string, c diffCase, used map[string]bool) map[string]string {
	plain := observe(t, dir, c, plainCommand)
	judge(t, c, plain, observe(t, dir, c, boxedCommand(s)), used)
	return plain
}

// judge fails where the observations differ otherwise than the case says.
func judge(t *testing.T, c diffCase, plain, boxed map[string]string, used map[string]bool) {
	known := map[string]diff{}
	differs := c.differs
	if os.Geteuid() == 0 {
		differs = slices.Concat(differs, c.root)
	}
	for _, d := range differs {
		if differences[d.which] == "" && sessionDifferences[d.which] == "" {
			t.Errorf("the difference %q has no reason", d.which)
		}
		used[d.which] = true
		known[d.key] = d
	}
	keys := map[string]bool{}
	for _, m := range []map[string]string{plain, boxed} {
		for k := range m {
			keys[k] = true
		}
	}
	for d := range known {
		keys[d] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		d, expected := known[k]
		p, b := valueOf(plain, k), valueOf(boxed, k)
		switch {
		case !expected && p == b, expected && p == d.plain && b == d.boxed:
		case expected:
			t.Errorf("%s: %s: the difference %q is another:\n os/exec %s\n sandbox %s\nand should be\n os/exec %s\n sandbox %s", c.name, k, d.which, clip(p), clip(b), clip(d.plain), clip(d.boxed))
		case k == cancelSet.key && p == cancelSet.plain && b == cancelSet.boxed:
			used[cancelSet.which] = true
		default:
			t.Errorf("%s: %s:\n os/exec %s\n sandbox %s", c.name, k, clip(p), clip(b))
		}
	}
}

// absent is the value of what was not observed.
const absent = "(absent)"

func valueOf(m map[string]string, k string) string {
	if v, ok := m[k]; ok {
		return v
	}
	return absent
}

func clip(s string) string {
	if len(s) > 600 {
		return s[:300] + " ... " + s[len(s)-300:]
	}
	return s
}

func plainCommand(ctx context.Context, name string, arg []string) *command {
	var c *exec.Cmd
	if ctx == nil {
		c = exec.Command(name, arg...)
	} else {
		c = exec.CommandContext(ctx, name, arg...)
	}
	return &command{Cmd: c, do: c, path: &c.Path}
}

// A commander is a sandbox, or a session of one.
type commander interface {
	Command(name string, arg ...string) *sandbox.Cmd
	CommandContext(ctx context.Context, name string, arg ...string) *sandbox.Cmd
}

func boxedCommand(s commander) maker {
	return func(ctx context.Context, name string, arg []string) *command {
		var c *sandbox.Cmd
		if ctx == nil {
			c = s.Command(name, arg...)
		} else {
			c = s.CommandContext(ctx, name, arg...)
		}
		return &command{Cmd: c.Cmd, do: c, path: &c.Path}
	}
}

// observe runs a case one way, in an empty directory, and notes what it leaves
// open.
func observe(t *testing.T, dir string, c diffCase, m maker) map[string]string {
	t.Helper()
	w := &world{T: t, dir: dir, make: m, seen: map[string]string{}}
	empty(t, dir)
	before := takeInventory(t)
	stuck := time.AfterFunc(4*time.Minute, func() { // one case runs 256 commands
		panic("stuck in " + t.Name())
	})
	c.run(w)
	stuck.Stop()
	if left := leftOver(t, before); left != "" {
		w.saw("left open", left)
	}
	empty(t, dir)
	return w.seen
}

func empty(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
