package tooltest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// TestKernelMercurialCommitsWhereThePolicyLetsIt: .hg is closed as a whole, and docs/protected-names.md says how a policy opens it.
func TestKernelMercurialCommitsWhereThePolicyLetsIt(t *testing.T) {
	needTools(t, []string{"hg"})
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("sh", "-c", "HGRCPATH= hg init . && echo 1 >a && HGRCPATH= hg commit -q -A -u person -m one && echo 2 >>a")
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("what comes before, outside: %v\n%s", err, out)
			}
			const script = "HGRCPATH= hg commit -u tool -m two; HGRCPATH= hg log -T '{desc} '; echo >.hg/hgrc 2>/dev/null || echo no hgrc"
			p := sandbox.Workspace(dir)
			p.Files.Protect.Except = []string{".hg"}
			p.Files.Protect.Add = []string{".hg/hgrc*", ".hg/sharedpath"}
			runScript(t, p, dir, script, []string{"two one ", "no hgrc"})

			s, err := sandbox.New(sandbox.Workspace(dir))
			if err != nil {
				t.Fatal(err)
			}
			tool := s.Command("sh", "-c", "echo 3 >>a; HGRCPATH= hg commit -u tool -m three")
			tool.Dir = dir
			out, err := tool.CombinedOutput()
			want := `add ".hg" to Files.Protect.Except, if the user's own programs may obey what the tool leaves there`
			found := ""
			for _, v := range tool.Report().Violations {
				if filepath.Base(filepath.Dir(v.Path)) == ".hg" {
					found = v.Remedy
				}
			}
			if err == nil || found != want {
				t.Errorf("%v, remedy %q\n%s", err, found, out)
			}
		})
	})
}
