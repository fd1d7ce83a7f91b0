package tooltest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelTools runs the tools that agents use in the default sandbox. Each is
// a script in testdata/tools, which runs in an empty workspace and says in its
// head what it needs and what it has to print. By hand, in an empty directory:
//
//	run -- bash -euo pipefail -c "$(cat .../testdata/tools/git.sh)"
//
// A tool that is not installed is skipped, except where CI is set: .ci/run
// installs them all.
func TestKernelTools(t *testing.T) {
	kerneltest.Long(t)
	scripts, err := filepath.Glob("testdata/tools/*.sh")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts: %v", len(scripts), err)
	}
	for _, file := range scripts {
		name := strings.TrimSuffix(filepath.Base(file), ".sh")
		if strings.HasSuffix(name, ".outside") {
			continue
		}
		script := readToolScript(t, file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if script.heavy {
				kerneltest.Heavy(t)
			}
			needTools(t, script.needs)
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				if as == kerneltest.Root && script.ordinary {
					return // it refuses to run as root, wherever it is
				}
				kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 4 * time.Minute}, func(t *testing.T) { script.run(t) })
			})
		})
	}
}

// A toolScript is one file of testdata/tools.
type toolScript struct {
	text, outside string   // outside runs first, without a sandbox
	needs         []string // programs
	prints        []string // in this order
	ordinary      bool     // not as root
	heavy         bool     // kerneltest.Heavy: it takes long
}

func readToolScript(t *testing.T, file string) toolScript {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := toolScript{text: string(text)}
	if outside, err := os.ReadFile(strings.TrimSuffix(file, ".sh") + ".outside.sh"); err == nil {
		s.outside = string(outside)
	}
	for line := range strings.Lines(s.text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# needs: "); ok {
			s.needs = strings.Fields(rest)
		}
		if rest, ok := strings.CutPrefix(line, "# prints: "); ok {
			s.prints = append(s.prints, rest)
		}
		s.heavy = s.heavy || line == "# heavy"
		s.ordinary = s.ordinary || line == "# as: ordinary"
	}
	if len(s.needs) == 0 || len(s.prints) == 0 {
		t.Fatalf("%s does not say what it needs and prints", file)
	}
	return s
}

// needTools skips, or fails in CI, when a program is not installed.
func needTools(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		// Debian keeps PostgreSQL's programs off PATH.
		if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and .ci/run has to install it", name)
		}
		t.Skipf("needs %s, which is not installed", name)
	}
}

// run runs the script in the default sandbox and checks all it has to print, its
// status, and that every bound held.
func (s toolScript) run(t *testing.T) {
	dir := t.TempDir()
	if s.outside != "" {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", s.outside)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("what comes before, outside: %v\n%s", err, out)
		}
	}
	runScript(t, sandbox.Workspace(dir), dir, s.text, s.prints)
}

// runScript runs a script under a policy in dir and returns what it printed.
func runScript(t *testing.T, p sandbox.Policy, dir, script string, prints []string) string {
	t.Helper()
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := s.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the script ended with: %v", err)
	}
	rest := out
	for _, want := range prints {
		_, after, found := bytes.Cut(rest, []byte(want))
		if !found {
			t.Errorf("it did not print %q, or not in its place", want)
			continue
		}
		rest = after
	}
	if r := cmd.Report(); !r.Held() {
		t.Errorf("not every bound held:\n%v", r)
	}
	if t.Failed() {
		t.Logf("it printed:\n%s", out)
	}
	return string(out)
}
