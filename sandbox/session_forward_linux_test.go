package sandbox

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "session datagrams", func(args []string) {
	c, err := net.ListenPacket("udp", args[0])
	if err == nil {
		_, _, err = c.ReadFrom(make([]byte, 1))
	}
	fmt.Println(err)
})

// A listener that is in no process's table of descriptors: it is on its way in a socket.
var _ = offer(programs, "session hidden listener", func(args []string) {
	l, err := net.Listen("tcp", args[0])
	if err == nil {
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0); err == nil {
			f, _ := l.(*net.TCPListener).File()
			err = unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(int(f.Fd())), nil, 0)
			f.Close()
			l.Close()
		}
	}
	fmt.Println("hidden", err)
	io.ReadFull(os.Stdin, make([]byte, 1))
})

// listenWalls are with a network namespace, and without namespaces on the machine's loopback.
var listenWalls = []walls{allSets[0], bareWalls[1], bareWalls[0]}

// portForTool returns a port at which no server of the machine's is, and which the kernel gives to none by itself.
func portForTool(t *testing.T) uint16 {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return uint16(port)
		}
	}
	t.Fatal("no port is free")
	return 0
}

// listening is a session whose policy names a port, as each user.
func listening(t *testing.T, sets []walls, body func(t *testing.T, s *Session, port uint16)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sets, func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p, port := attackPolicy(t, "", w), portForTool(t)
		p.Network.Listen = []uint16{port}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s, port)
	})
}

// TestKernelPortsListsWhoListens in a session: also a listener that a tool hides in a socket, and nothing of this machine's.
func TestKernelPortsListsWhoListens(t *testing.T) {
	kerneltest.Long(t)
	listening(t, listenWalls[:1], func(t *testing.T, s *Session, _ uint16) {
		if ports, err := s.Ports(); len(ports) != 0 || err != nil {
			t.Errorf("of a new session: %+v, %v", ports, err)
		}
		server := s.program("session late server", "127.0.0.1:8080")
		begin, err := server.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		begin.Write([]byte{1})
		ports, err := s.WaitPorts(t.Context(), nil)
		want := netip.MustParseAddr("127.0.0.1")
		if err != nil || len(ports) != 1 || ports[0].Port != 8080 || ports[0].Address != want || ports[0].Protocol != "tcp" || ports[0].Process.Command != server.Path {
			t.Fatalf("%+v, %v", ports, err)
		}
		if err := s.program("session datagrams", "127.0.0.1:5353").Start(); err != nil {
			t.Fatal(err)
		}
		ports, err = s.WaitPorts(t.Context(), ports)
		if err != nil || len(ports) != 2 || ports[0].Port != 5353 || ports[0].Protocol != "udp" || ports[0].Process.PID == 0 {
			t.Fatalf("%+v, %v", ports, err)
		}
		hidden := s.program("session hidden listener", "127.0.0.1:9000")
		out, err := hidden.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, _ := hidden.StdinPipe()
		defer in.Close()
		if err := hidden.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("hidden <nil>\n"))
		if io.ReadFull(out, line); string(line) != "hidden <nil>\n" {
			t.Fatalf("%q", line)
		}
		if ports, err := s.Ports(); err != nil || len(ports) != 3 || ports[2].Port != 9000 || ports[2].Process.PID != 0 {
			t.Errorf("a listener in no process: %+v, %v", ports, err)
		}
		ended := make(chan error, 1)
		go func() {
			for ports, err := s.Ports(); ; ports, err = s.WaitPorts(t.Context(), ports) {
				if err != nil {
					ended <- err
					return
				}
			}
		}()
		s.Close()
		over := (*policy.SessionError)(nil)
		if err := <-ended; !errors.As(err, &over) {
			t.Errorf("%v", err)
		}
	})
}

// TestKernelForwardLeadsToAPortOfTheSession, if the policy grants it, and ends with the session.
func TestKernelForwardLeadsToAPortOfTheSession(t *testing.T) {
	listening(t, listenWalls, func(t *testing.T, s *Session, port uint16) {
		not := (*PolicyError)(nil)
		if _, err := s.Forward(22); !errors.As(err, &not) || not.Remedy == "" {
			t.Errorf("a port that the policy does not name: %v", err)
		}
		at, err := s.Forward(port)
		if err != nil || at.Addr() != netip.MustParseAddr("127.0.0.1") {
			t.Fatalf("%v, %v", at, err)
		}
		if again, err := s.Forward(port); again != at || err != nil {
			t.Errorf("once more: %v, %v", again, err)
		}
		read := func() (string, error) {
			c, err := net.Dial("tcp", at.String())
			if err != nil {
				return "", err
			}
			defer c.Close()
			out, err := io.ReadAll(c)
			return string(out), err
		}
		if out, err := read(); out != "" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("without a server: %q, %v", out, err)
		}
		server := s.program("session late server", fmt.Sprint("127.0.0.1:", port))
		begin, _ := server.StdinPipe()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		begin.Write([]byte{1})
		if err := s.WaitPort(t.Context(), port); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if out, err := read(); out != "served" || err != nil {
				t.Errorf("%q, %v", out, err)
			}
		}
		s.Close()
		if out, err := read(); err == nil {
			t.Errorf("after Close: %q", out)
		}
		over := (*policy.SessionError)(nil)
		if _, err := s.Forward(port); !errors.As(err, &over) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestKernelExtendEndsTheSession at its deadline and not before it, and moves that.
func TestKernelExtendEndsTheSession(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		not := (*PolicyError)(nil)
		if err := s.Extend(0); !errors.As(err, &not) {
			t.Errorf("%v", err)
		}
		for _, in := range []time.Duration{time.Hour, 2 * time.Hour} {
			if err := s.Extend(in); err != nil {
				t.Error(err)
			}
		}
		c := s.sh("setsid sleep 1000 & exec sleep 1000")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		list := awaitProcesses(t, s, 2, "sleep")
		if err := s.Extend(time.Millisecond); err != nil && !errors.Is(err, ErrDeadline) {
			t.Error(err)
		}
		over := (*policy.SessionError)(nil)
		if err := c.Wait(); !errors.As(err, &over) || !errors.Is(err, ErrDeadline) {
			t.Errorf("a command at the deadline: %v", err)
		}
		for _, p := range list {
			if !isDead(p.Outside) {
				t.Errorf("%v lives", p.Args)
			}
		}
		if err := s.Extend(time.Hour); !errors.As(err, &over) || !errors.Is(err, ErrDeadline) {
			t.Errorf("after the deadline: %v", err)
		}
		if err := s.sh("true").Run(); !errors.Is(err, ErrDeadline) {
			t.Errorf("after the deadline: %v", err)
		}
	})
}
