package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// The shims of pyenv and its kin, in a tree that is shown to read: a tool that writes them anew gets its own copies, and where the
// host can make none they still start programs.
func TestKernelCopiesInAReadableTreeAreReadWhereThereAreNone(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		base := realTemp(t)
		shims := filepath.Join(base, "pyenv/shims")
		ws := filepath.Join(base, "ws")
		for _, dir := range []string{shims, ws} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(shims+"/pip", []byte("#!/bin/sh\necho shim\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, "", w)
		p.Files.Read, p.Files.CopyOnWrite, p.Files.Write = append(p.Files.Read, filepath.Dir(shims)), []string{shims}, []string{ws}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd := s.Command("sh", "-c", shims+"/pip; (echo x > "+shims+"/new) 2>/dev/null && echo written; true")
		cmd.Dir = ws
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		copies := s.facts.Overlay.Yes() && s.facts.Namespaces.Yes()
		if want := map[bool]string{true: "shim\nwritten\n", false: "shim\n"}[copies]; string(out) != want {
			t.Errorf("it printed %q, want %q", out, want)
		}
		if _, err := os.Lstat(shims + "/new"); err == nil {
			t.Error("the host's directory was written")
		}
		if told := strings.Contains(cmd.Report().String(), shims+" can be read alone"); told == copies {
			t.Errorf("the report:\n%v", cmd.Report())
		}
	})
}
