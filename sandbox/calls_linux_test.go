package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "ordinary work", func(args []string) {
	say := func(name string, err error) { fmt.Println(name, err == nil) }
	write := func(path string) error { return os.WriteFile(path, []byte("x\n"), 0o644) }
	bind := func(to unix.Sockaddr) error {
		family := unix.AF_UNIX
		if _, ok := to.(*unix.SockaddrInet4); ok {
			family = unix.AF_INET
		}
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(fd)
			if err = unix.Bind(fd, to); err == nil {
				err = unix.Listen(fd, 1)
			}
		}
		return err
	}
	os.Chdir(args[0])
	say("file", write("a"))
	say("null", write("/dev/null"))
	say("rename", os.Rename("a", "b"))
	say("temporary", write(filepath.Join(os.TempDir(), "t")))
	say("protected", write(".envrc"))
	say("hook", os.Mkdir(".git/hooks/d", 0o755))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		_, err = unix.Write(pair[0], []byte("x"))
	}
	say("pair", err)
	say("loopback", bind(&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	say("abstract", bind(&unix.SockaddrUnix{Name: fmt.Sprint("@ordinary-work-", os.Getpid())}))
	say("socket in a directory of the sandbox's own", bind(&unix.SockaddrUnix{Name: "/var/tmp/s"}))
	say("socket in the workspace", bind(&unix.SockaddrUnix{Name: "plain.sock"}))
	say("socket at a protected name", bind(&unix.SockaddrUnix{Name: ".idea"}))
	say("socket renamed into the workspace", os.Rename("/var/tmp/s", "moved.sock"))
})

// TestKernelWorkWithoutCallsIntoOtherProcesses: container engines refuse process_vm_readv(2) and pidfd_getfd(2) without CAP_SYS_PTRACE. Files are
// written and names held all the same; what a socket's name would need the second call for is refused by Landlock, and the report says so.
func TestKernelWorkWithoutCallsIntoOtherProcesses(t *testing.T) {
	kerneltest.Long(t)
	const files = "file true\nnull true\nrename true\ntemporary true\nprotected false\nhook false\npair true\n"
	for _, h := range []struct {
		name    string
		without []kerneltest.Feature
		want    string
		note    string
	}{
		{"with namespaces", []kerneltest.Feature{kerneltest.ProcessCalls}, files + "loopback true\nabstract true\nsocket in a directory of the sandbox's own true\n" +
			"socket in the workspace false\nsocket at a protected name false\nsocket renamed into the workspace false\n", "no socket can be made in what the policy lets the tool write"},
		{"without", []kerneltest.Feature{kerneltest.ProcessCalls, kerneltest.Namespaces}, files + "loopback true\nabstract true\nsocket in a directory of the sandbox's own false\n" +
			"socket in the workspace true\nsocket at a protected name false\nsocket renamed into the workspace false\n", ""},
	} {
		t.Run(h.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: h.without}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasMountSetattr, kerneltest.LandlockABI(1))
					p := workspaceHere(t)
					dir := filepath.Join(os.Getenv("HOME"), "ws")
					if err := os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755); err != nil {
						t.Fatal(err)
					}
					exe, err := os.Executable()
					if err != nil {
						t.Fatal(err)
					}
					p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
					p.Files.Read = append(p.Files.Read, exe)
					s, err := New(p)
					if err != nil {
						t.Fatal(err)
					}
					out, r := says(t, s, "ordinary work", dir)
					if out != h.want {
						t.Errorf("got\n%swant\n%s%s", out, h.want, r)
					}
					if !strings.Contains(r.String(), h.note) {
						t.Errorf("the report does not say %q:\n%s", h.note, r)
					}
					for _, name := range []string{".envrc", ".idea", "moved.sock", ".git/hooks/d"} {
						if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
							t.Errorf("%s is there", name)
						}
					}
				})
			})
		})
	}
}
