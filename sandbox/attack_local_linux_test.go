package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tool that works in a directory with a host's socket: it meets at sockets of its own, and reaches for the host's, one of them at a port.
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
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", ":0", "0.0.0.0:0", "localhost:0"} {
		if err := meetInside("tcp", at)(ground{}); err != nil {
			fail("meet at "+at, err)
		}
	}
	if list, err := net.Interfaces(); err != nil || len(list) == 0 { // as what serves asks, to say where
		fail("interfaces", fmt.Errorf("%v, %w", list, err))
	}
	_, port, _ := net.SplitHostPort(args[1])
	for _, at := range []string{args[1], "localhost:" + port, "0.0.0.0:" + port, "[::1]:" + port, "[::]:" + port, "[::ffff:127.0.0.1]:" + port} {
		if c, err := net.Dial("tcp", at); err == nil {
			fail("ESCAPE", fmt.Errorf("connected to %s", c.RemoteAddr()))
		}
	}
	serveUntilAsked(fail)
})

// serveUntilAsked serves at a port, says which, and looks for clients when the harness has tried to be one.
func serveUntilAsked(fail func(string, error)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("serve", err)
		return
	}
	fmt.Println("port", l.Addr().(*net.TCPAddr).Port)
	os.Stdin.Read(make([]byte, 1))
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 {
				fail("ESCAPE", errors.New("a client of the host's came to the tool's server"))
			}
		})
	}
	if err != nil {
		fail("poll", err)
	}
}

// meetTool runs a tool that says a word and a number in one line, and then waits for the end of its input, before which met is called. It returns the
// tool's other lines.
func meetTool(t *testing.T, c *Cmd, word string, met func(number int)) string {
	t.Helper()
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	lines, number := bufio.NewReader(out), -1
	var said strings.Builder
	for number < 0 {
		line, err := lines.ReadString('\n')
		if n, _ := fmt.Sscanf(line, word+" %d", &number); n == 0 {
			said.WriteString(line)
		}
		if err != nil {
			break
		}
	}
	if number >= 0 {
		met(number)
	}
	in.Close()
	rest, _ := io.ReadAll(lines)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	return said.String() + string(rest)
}

// dialTool connects to the tool's port at 127.0.0.1, as another program on the host would. The tool's server listens at another
// loopback address, so a listener here takes the port first: that one gets the clients, and the tool reports any that reach it.
func dialTool(t *testing.T, port int) {
	t.Helper()
	own, taken := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) // by another program, or by the tool, which says so
	if taken == nil {
		defer own.Close()
	}
	for _, addr := range []unix.Sockaddr{&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet4{Port: port}} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, addr); err != nil && taken == nil {
			t.Errorf("the host's own server at the tool's port does not answer the host: %v", err)
		}
	}
}

// TestKernelAttackTheHostsLocalSockets: without namespaces, as in plain Docker, a tool's processes meet at UNIX sockets and at ports of the loopback
// network. None of the host's sockets is reached, which it finds in its own workspace, or by the name that the tool has for one of its own,
// or at a port; and the tool's server serves no client of the host's.
func TestKernelAttackTheHostsLocalSockets(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		for name, change := range map[string]func(p *Policy){
			"names are protected": func(p *Policy) {},
			"with a proxy":        func(p *Policy) { p.Files.Protect.Off, p.Network.Hosts = true, []string{"allowed.example"} },
		} {
			t.Run(name, func(t *testing.T) {
				abstract := fmt.Sprintf("holdfast-host-%d", os.Getpid())
				p, dir := barePolicy(t, w)
				change(&p)
				host := []net.Listener{waitAt(t, "unix", filepath.Join(dir, "host.sock")), waitAt(t, "unix", "@"+abstract), waitAt(t, "tcp", "127.0.0.1:0")}
				c := hostile(t, attackSandbox(t, p, w), "local", abstract, host[2].Addr().String())
				c.Dir = dir
				served := false
				out := meetTool(t, c, "port", func(port int) {
					served = true
					heardNothing(t, host[2]) // which the tool has tried by now; its server may have the same port
					host[2].Close()
					dialTool(t, port)
				})
				if len(out) > 0 || !served {
					t.Errorf("%s\n%s", out, c.Report())
				}
				for _, l := range host[:2] {
					heardNothing(t, l)
				}
			})
		}
	})
}

func waitAt(t *testing.T, network, name string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// heardNothing: no connection waits at a listener that accepts none.
func heardNothing(t *testing.T, l net.Listener) {
	t.Helper()
	raw, err := l.(syscall.Conn).SyscallConn()
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
