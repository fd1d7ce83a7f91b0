package sandbox

import (
	"errors"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelWhatOnlyRootCanReadIsHidden from a root harness's tool, which has root's
// uid, in the trees that administrators fill; and what everybody can read is there.
func TestKernelWhatOnlyRootCanReadIsHidden(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
		dir := t.TempDir()
		if !ownMounts(t) {
			t.Fatal("no mounts of its own")
		}
		for _, tree := range []string{"/opt", "/usr/local"} {
			if err := unix.Mount("tree", tree, "tmpfs", 0, "mode=0755"); err != nil {
				t.Fatal(err)
			}
			for name, mode := range map[string]os.FileMode{"/app/etc/open": 0o644, "/app/.env": 0o600, "/app/etc/db.pass": 0o640} {
				err := errors.Join(os.MkdirAll(tree+"/app/etc", 0o755), os.WriteFile(tree+name, []byte("value of "+name+"\n"), mode), os.Chmod(tree+name, mode))
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		s, err := New(Workspace(dir))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, tree := range []string{"/opt", "/usr/local"} {
			c := s.Command("/bin/cat", tree+"/app/etc/open", tree+"/app/.env", tree+"/app/etc/db.pass")
			c.Dir = dir
			out, err := c.Output()
			if string(out) != "value of /app/etc/open\n" || err == nil {
				t.Errorf("%s: %q, %v", tree, out, err)
			}
		}
	})
}
