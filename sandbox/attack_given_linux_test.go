package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// The tool that makes another connection of the socket that it was given as
// descriptor 3.
var _ = offer(programs, "turn a socket", func([]string) {
	var unspecified [16]byte
	rawCall(unix.SYS_CONNECT, 3, addressOf(&unspecified), 16)
	domain, _ := unix.GetsockoptInt(3, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, _ := unix.GetsockoptInt(3, unix.SOL_SOCKET, unix.SO_TYPE)
	to := map[string]unix.Sockaddr{
		fmt.Sprint(unix.AF_INET, unix.SOCK_STREAM): inet(os.Getenv("ATTACK_TCP")), fmt.Sprint(unix.AF_INET, unix.SOCK_DGRAM): inet(os.Getenv("ATTACK_UDP")),
		fmt.Sprint(unix.AF_UNIX, unix.SOCK_STREAM): &unix.SockaddrUnix{Name: os.Getenv("ATTACK_ABSTRACT")}, fmt.Sprint(unix.AF_UNIX, unix.SOCK_DGRAM): &unix.SockaddrUnix{Name: os.Getenv("ATTACK_ABSTRACT_DGRAM")},
	}[fmt.Sprint(domain, kind)]
	err := unix.Connect(3, to)
	if err == nil {
		_, err = unix.Write(3, []byte("x"))
	}
	fmt.Println("turned:", err)
})

// TestKernelAttackGivenSockets: a socket of the harness's network that a command is
// given is that network, whatever it is connected to: it can be disconnected and
// connected anew. So none is handed over; those that cannot be turned are.
func TestKernelAttackGivenSockets(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, directWalls, func(t *testing.T, w walls) {
		serveHost(t)
		socket := func(family, kind int, and func(fd int) error) func() *os.File {
			return func() *os.File {
				fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
				if err == nil && and != nil {
					err = and(fd)
				}
				if err != nil {
					t.Fatal(err)
				}
				return os.NewFile(uintptr(fd), "socket")
			}
		}
		pair := func(kind int) func() *os.File {
			return func() *os.File {
				fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { unix.Close(fds[1]) })
				return os.NewFile(uintptr(fds[0]), "pair")
			}
		}
		bound := func(fd int) error {
			return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@holdfast-given-%d-%d", os.Getpid(), fd)}), unix.Listen(fd, 1))
		}
		s := attackSandbox(t, attackPolicy(t, "", w), w)
		scoped := s.ready.Plan.Namespaces.Mount && s.ready.Plan.Uses(plan.LandlockScope)
		for name, c := range map[string]struct {
			make  func() *os.File
			turns bool // it can be
			hands bool // it is handed over
		}{
			"a connection":          {make: socket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error { return unix.Connect(fd, inet(os.Getenv("ATTACK_TCP"))) }), turns: true},
			"a listener":            {make: socket(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error { return unix.Listen(fd, 1) }), turns: true},
			"an unconnected socket": {make: socket(unix.AF_INET, unix.SOCK_STREAM, nil), turns: true},
			"a datagram socket":     {make: socket(unix.AF_INET, unix.SOCK_DGRAM, nil), turns: true},
			"a local socket":        {make: socket(unix.AF_UNIX, unix.SOCK_STREAM, nil), turns: true, hands: scoped},
			"local datagrams":       {make: pair(unix.SOCK_DGRAM), turns: true, hands: scoped},
			"a local pair":          {make: pair(unix.SOCK_STREAM), hands: true},
			"a local listener":      {make: socket(unix.AF_UNIX, unix.SOCK_STREAM, bound), hands: true},
		} {
			plain := hostileBare(t, "turn a socket")
			plain.ExtraFiles = []*os.File{c.make()}
			if out, err := plain.CombinedOutput(); err != nil || strings.Contains(string(out), "turned: <nil>") != c.turns {
				t.Errorf("%s, without walls: %v, %s", name, err, out)
			}
			inside := hostile(t, s, "turn a socket")
			inside.ExtraFiles = []*os.File{c.make()}
			out, err := inside.CombinedOutput()
			if strings.Contains(string(out), "turned: <nil>") {
				t.Errorf("ESCAPE: %s was turned", name)
			}
			var wrong *PolicyError
			if refused := errors.As(err, &wrong) && wrong.Field == "ExtraFiles[0]"; refused == c.hands || c.hands && err != nil {
				t.Errorf("%s: %v, %s", name, err, out)
			}
		}
		in, err := net.Dial("tcp", os.Getenv("ATTACK_TCP"))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		file, err := in.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c := hostile(t, s, "descriptors")
		c.Stdin = file
		var wrong *PolicyError
		if err := c.Run(); !errors.As(err, &wrong) || wrong.Field != "Stdin" || wrong.Remedy == "" {
			t.Errorf("as standard input: %v", err)
		}
		p := attackPolicy(t, "", w)
		p.Network.Host = true
		c = hostile(t, attackSandbox(t, p, w), "turn a socket")
		c.ExtraFiles = []*os.File{file}
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "turned: <nil>") {
			t.Errorf("with the harness's network shared: %v, %s", err, out)
		}
	})
}
