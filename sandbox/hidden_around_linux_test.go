package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelARuleHoldsInsideWhatIsHidden: the deepest rule decides, and what lies
// beside it in the hidden directory stays hidden.
func TestKernelARuleHoldsInsideWhatIsHidden(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
			if err != nil {
				t.Fatal(err)
			}
			ws := filepath.Join(home, "ws")
			for _, dir := range []string{"hidden/on/the/way/read", "hidden/write", "hidden/secret"} {
				if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(ws, dir, "f"), []byte(dir+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, around := range map[string]func(*sandbox.Files){
				"to write":      func(f *sandbox.Files) { f.Write = append(f.Write, ws) },
				"to read":       func(f *sandbox.Files) { f.Read = append(f.Read, ws) },
				"copy-on-write": func(f *sandbox.Files) { f.CopyOnWrite = append(f.CopyOnWrite, ws) },
			} {
				f := sandbox.Files{
					Read: []string{"/usr", "/bin", "/lib", "/lib64", filepath.Join(ws, "hidden/on/the/way/read")}, Write: []string{filepath.Join(ws, "hidden/write")}, Hide: []string{filepath.Join(ws, "hidden")},
				}
				around(&f)
				s, err := sandbox.New(sandbox.Policy{Files: f})
				if err != nil {
					t.Fatal(err)
				}
				c := s.Command("/bin/sh", "-c", `cd "$1/hidden" && cat on/the/way/read/f && echo new >write/f && cat write/f
					ls . ; cat secret/f; echo >new; mkdir d; chmod 777 .; rm -r secret; mv on off; mv write on; echo >on/the/new; echo >on/the/way/read/f; true`, "sh", ws)
				c.Dir = "/"
				out, err := c.Output()
				if want := "hidden/on/the/way/read\nnew\n"; string(out) != want || err != nil {
					t.Errorf("%s: %q, %v", name, out, err)
				}
				s.Close()
			}
			for dir, want := range map[string]string{"hidden/on/the/way/read": "hidden/on/the/way/read\n", "hidden/write": "new\n", "hidden/secret": "hidden/secret\n"} {
				if text, err := os.ReadFile(filepath.Join(ws, dir, "f")); string(text) != want {
					t.Errorf("%s holds %q, %v", dir, text, err)
				}
			}
			if list, _ := os.ReadDir(filepath.Join(ws, "hidden")); len(list) != 3 {
				t.Errorf("the hidden directory was changed: %v", list)
			}
		})
	})
}
