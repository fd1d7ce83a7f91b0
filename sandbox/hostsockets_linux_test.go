package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelSocketsInWhatIsShownAreClosed: a directory that can be read does not give the
// sockets in it. One that the policy names stays open, so do those in the workspace, and a
// socket that is gone when the run begins, or that the sandbox cannot reach either, is none to stumble over.
func TestKernelSocketsInWhatIsShownAreClosed(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			shown, ws := shortDir(t), shortDir(t)
			listen := func(p string) net.Listener {
				l, err := net.Listen("unix", p)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				go func() {
					for c, err := l.Accept(); err == nil; c, err = l.Accept() {
						c.Close()
					}
				}()
				return l
			}
			if err := os.Symlink(shown, filepath.Join(ws, "link")); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"closed", "a b", "granted"} {
				listen(filepath.Join(shown, name))
			}
			listen(filepath.Join(ws, "link", "by a link"))
			listen(filepath.Join(ws, "work"))
			gone := listen(filepath.Join(shown, "gone"))
			// Another user's agent, below what is shown: its directory is closed to the sandbox as well.
			others := filepath.Join(shown, "others")
			if err := os.Mkdir(others, 0o700); err != nil {
				t.Fatal(err)
			}
			listen(filepath.Join(others, "agent"))
			if as == kerneltest.Root {
				if err := os.Chown(others, 4711, 4711); err != nil {
					t.Fatal(err)
				}
			}
			p := attackPolicy(t, "", walls{})
			p.Files.Private = nil
			p.Files.Read = append(p.Files.Read, shown)
			p.Files.Write = []string{ws}
			p.Network.Unix = []string{filepath.Join(shown, "granted")}
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := gone.Close(); err != nil {
				t.Fatal(err)
			}
			for path, open := range map[string]bool{
				filepath.Join(shown, "closed"): false, filepath.Join(shown, "a b"): false, filepath.Join(shown, "by a link"): false, filepath.Join(others, "agent"): false,
				filepath.Join(shown, "granted"): true, filepath.Join(ws, "work"): true,
			} {
				c := hostile(t, s, "connect to", path)
				out, err := c.CombinedOutput()
				if got := strings.TrimSpace(string(out)) == "connected"; err != nil || got != open {
					t.Errorf("%s: connected %v, want %v: %v %s", filepath.Base(path), got, open, err, out)
				}
			}
		})
	})
}

var _ = offer(programs, "connect to", func(args []string) {
	c, err := net.Dial("unix", args[0])
	if err != nil {
		os.Stdout.WriteString(err.Error())
		return
	}
	c.Close()
	os.Stdout.WriteString("connected")
})

// shortDir makes a directory whose sockets' paths are not too long (unix(7)).
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
