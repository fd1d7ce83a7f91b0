package tooltest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// An everyday is one row of testdata/everyday.txt.
type everyday struct {
	name, script string
	needs        []string // programs
}

// TestKernelEverydayTasks runs each row of testdata/everyday.txt whose programs are here, outside and in the default sandbox:
// both have to print the same. All rows of a user share one sandbox, two at a time.
func TestKernelEverydayTasks(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	text, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows []everyday
	for _, part := range strings.Split(string(text), "\n== ")[1:] {
		head, script, _ := strings.Cut(part, "\n")
		i := strings.LastIndex(head, ": ")
		if i < 0 || script == "" {
			t.Fatalf("%q is no row", head)
		}
		rows = append(rows, everyday{head[:i], script, strings.Fields(head[i+2:])})
	}
	some := func(without ...string) []everyday {
		return slices.DeleteFunc(slices.Clone(rows), func(r everyday) bool {
			return slices.ContainsFunc(without, func(mark string) bool { return strings.Contains(r.name, mark) })
		})
	}
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		c, rows := kerneltest.Child{As: as, Timeout: 8 * time.Minute}, rows
		if as == kerneltest.Ordinary && os.Geteuid() == 0 || !kerneltest.All(t) {
			rows = some("[slow]")
		}
		kerneltest.InChild(t, c, func(t *testing.T) { runEveryday(t, rows, sandbox.Workspace) })
	})
	t.Run("without namespaces", func(t *testing.T) {
		kerneltest.Heavy(t)
		rows := some("[slow]", "[namespaces]")
		kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary, Without: []kerneltest.Feature{kerneltest.Namespaces}, Timeout: 8 * time.Minute}, func(t *testing.T) {
			runEveryday(t, rows, func(dir string) sandbox.Policy {
				p := sandbox.Workspace(dir)
				p.May = []sandbox.Bound{"files", "network", "processes", "resources", "syscalls"}
				return p
			})
		})
	})
}

// everydayScript runs the rows that are directories here.
const everydayScript = `printf '%s\n' * | xargs -P 2 -I{} bash -c 'cd {} && mkdir work && cd work && timeout 200 bash -euo pipefail ../script >../out 2>../err </dev/null; echo $? >../status'`

func runEveryday(t *testing.T, rows []everyday, preset func(string) sandbox.Policy) {
	places := [2]string{t.TempDir(), t.TempDir()} // outside, inside
	missing := make([]string, len(rows))
	for i, row := range rows {
		for _, name := range row.needs {
			if _, err := exec.LookPath(name); err != nil {
				missing[i] = name
			}
		}
		for _, place := range places {
			if missing[i] != "" {
				continue
			}
			dir := filepath.Join(place, strconv.Itoa(i))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "script"), []byte(row.script), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Minute)
	defer cancel()
	p := preset(places[1])
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	outside, inside := exec.CommandContext(ctx, "bash", "-c", everydayScript), s.CommandContext(ctx, "bash", "-c", everydayScript)
	outside.Dir, inside.Dir = places[0], places[1]
	var both sync.WaitGroup
	both.Go(func() {
		if out, err := outside.CombinedOutput(); err != nil {
			t.Errorf("outside: %v\n%s", err, out)
		}
	})
	if out, err := inside.CombinedOutput(); err != nil {
		t.Errorf("inside: %v\n%s", err, out)
	}
	both.Wait()
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if missing[i] != "" {
				t.Skipf("needs %s, which is not installed", missing[i])
			}
			file := func(k int, name string) string {
				text, _ := os.ReadFile(filepath.Join(places[k], strconv.Itoa(i), name))
				return string(text)
			}
			if file(0, "status") != "0\n" {
				t.Skipf("needs a machine on which it works outside: status %s%s", file(0, "status"), file(0, "err"))
			}
			if file(1, "status") != "0\n" || file(1, "out") != file(0, "out") {
				t.Errorf("outside\n%s\ninside, status %s%s\n%s", file(0, "out"), file(1, "status"), file(1, "out"), file(1, "err"))
			}
		})
	}
	if r := inside.Report(); !r.Held() && p.May == nil {
		t.Errorf("not every bound held:\n%v", r)
	}
}
