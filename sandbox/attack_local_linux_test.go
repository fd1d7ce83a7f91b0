package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// The tool that works in a directory with a host's socket: it meets at sockets of its own, and reaches for the host's.
var _ = offer(programs, "local", func(args []string) {
	fail := func(what string, err error) { fmt.Println(what+":", err) }
	for _, name := range []string{"own.sock", filepath.Join(os.TempDir(), "own.sock"), "@" + args[0]} {
		if err := meetInside("unix", name)(ground{}); err != nil {
			fail("meet at "+name, err)
		}
	}
	if err := os.Link("host.sock", "second.sock"); err != nil {
		fail("link", err)
	}
	if err := os.Symlink("host.sock", "link.sock"); err != nil {
		fail("symlink", err)
	}
	if err := os.Rename("host.sock", "renamed.sock"); err != nil {
		fail("rename", err)
	}
	cwd, _ := os.Getwd()
	for _, name := range []string{"renamed.sock", filepath.Join(cwd, "renamed.sock"), "second.sock", "link.sock", "/proc/self/cwd/second.sock", "@" + args[0]} {
		if c, err := net.Dial("unix", name); err == nil {
			fail("ESCAPE", fmt.Errorf("connected to %s", c.RemoteAddr()))
		}
	}
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		fail("ESCAPE", fmt.Errorf("serves the host at %s", l.Addr()))
	}
})

// TestKernelAttackTheHostsLocalSockets: without namespaces, as in plain Docker, a tool's processes meet at UNIX sockets, and none of the host's
// is reached, which it finds in its own workspace, or by the name that the tool has for one of its own.
func TestKernelAttackTheHostsLocalSockets(t *testing.T) {
	docker := inContainer
	docker.without = []kerneltest.Feature{kerneltest.Namespaces, kerneltest.ProcessCalls}
	eachWall(t, []walls{docker, allSets[3]}, func(t *testing.T, w walls) {
		for name, change := range map[string]func(p *Policy){
			"names are protected": func(p *Policy) { p.Files.Protect.Off = false },
			"with a proxy":        func(p *Policy) { p.Network.Hosts = []string{"allowed.example"} },
		} {
			t.Run(name, func(t *testing.T) {
				dir, err := os.MkdirTemp("", "s") // short: an address holds 107 bytes
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				abstract := fmt.Sprintf("holdfast-host-%d", os.Getpid())
				p := attackPolicy(t, "", w)
				p.Files.Private, p.Files.Write = []string{"/var/tmp"}, []string{dir}
				change(&p)
				host := []net.Listener{waitAt(t, filepath.Join(dir, "host.sock")), waitAt(t, "@"+abstract)}
				c := hostile(t, attackSandbox(t, p, w), "local", abstract)
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v\n%s\n%s", err, out, c.Report())
				}
				for _, l := range host {
					heardNothing(t, l)
				}
			})
		}
	})
}

func waitAt(t *testing.T, name string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// heardNothing: no connection waits at a listener that accepts none.
func heardNothing(t *testing.T, l net.Listener) {
	t.Helper()
	raw, err := l.(*net.UnixListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
			t.Errorf("the host's %s was connected to (%d, %v)", l.Addr(), n, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
