package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelWhatIsHiddenInAWritableRootStaysInItsPlace: a tool that moved the
// directory around it away could put a decoy there, for the next run to hide.
func TestKernelWhatIsHiddenInAWritableRootStaysInItsPlace(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(home, "around")
			if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := sandbox.New(sandbox.Policy{Files: sandbox.Files{Write: []string{"/"}, Hide: []string{filepath.Join(dir, "keys")}, Protect: policy.Protect{Off: true}}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := s.Command("/bin/sh", "-c", `cd "$1" && mv around moved; ls around/keys; echo made >around/new && mkdir d && mv d e && echo works; ls /dev/null && ! [ -e /dev/kmsg ] && echo own`, "sh", home)
			out, err := c.Output()
			if string(out) != "works\n/dev/null\nown\n" {
				t.Errorf("%q, %v", out, err)
			}
			if _, err := os.Stat(filepath.Join(home, "moved")); err == nil {
				t.Error("the directory around what is hidden was moved")
			}
			if text, err := os.ReadFile(filepath.Join(dir, "new")); string(text) != "made\n" {
				t.Errorf("the tool could not write beside it: %q, %v", text, err)
			}
		})
	})
}
