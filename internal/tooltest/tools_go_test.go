package tooltest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelGoWithEmptyAndFullCache builds and vets a module twice: with
// an empty build cache, which the tool fills, and then with that cache under
// copy-on-write. The second time nothing of the standard library is compiled,
// what the tool adds is there for itself, and outside nothing has changed.
func TestKernelGoWithEmptyAndFullCache(t *testing.T) {
	kerneltest.Heavy(t) // it compiles Go's runtime
	needTools(t, []string{"go"})
	script := readToolScript(t, "testdata/tools/cached/go.sh")
	script.text += "\ncd .. && rm -rf m\n"
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 5 * time.Minute}, func(t *testing.T) {
			dir, cache := t.TempDir(), t.TempDir()
			empty := sandbox.Workspace(dir)
			empty.Files.Write = append(empty.Files.Write, cache)
			empty.Env.Set["GOCACHE"] = cache
			if out := runScript(t, empty, dir, script.text, script.prints); !strings.Contains(out, "\nruntime\n") {
				t.Errorf("with an empty cache the runtime was not compiled:\n%s", out)
			}
			before := listing(t, cache)

			full := sandbox.Workspace(dir)
			full.Files.CopyOnWrite = append(full.Files.CopyOnWrite, cache)
			full.Env.Set["GOCACHE"] = cache
			full.Env.Set["GOFLAGS"] = "-ldflags=-s" // something to add to the cache
			if out := runScript(t, full, dir, script.text, script.prints); strings.Contains(out, "\nruntime\n") {
				t.Errorf("with a full cache the runtime was compiled:\n%s", out)
			}
			if after := listing(t, cache); !maps.Equal(before, after) {
				t.Errorf("the cache outside has changed: %d files before, %d after", len(before), len(after))
			}
		})
	})
}

// listing returns the files of a tree with their sizes and times.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Lstat(p)
		if err == nil {
			files[p] = info.Mode().String() + " " + info.ModTime().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
