package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// The names of a tool's server beside its port.
const socketFile, socketName = "server.sock", "@session server"

// The tool that serves at a port, which it says, at a file and at an abstract name, until the end of its input.
var _ = offer(programs, "session sockets", func(args []string) {
	port := 0
	for _, at := range [][2]string{{"tcp", args[0]}, {"unix", socketFile}, {"unix", socketName}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			fmt.Println("serve:", err)
			os.Exit(1)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, "served")
				c.Close()
			}
		}()
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			port = a.Port
		}
	}
	os.WriteFile("warden", []byte(strconv.Itoa(os.Getppid())), 0o600)
	fmt.Println("port", port)
	os.Stdin.Read(make([]byte, 1))
})

// The tool that says what comes of connecting to all of them.
var _ = offer(programs, "session dials", func(args []string) {
	for _, at := range [][2]string{{"tcp", "127.0.0.1:" + args[0]}, {"tcp", "[::1]:" + args[0]}, {"unix", socketFile}, {"unix", socketName}} {
		c, err := net.Dial(at[0], at[1])
		switch {
		case err == nil:
			text, err := io.ReadAll(c)
			fmt.Println(string(text), err)
		case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOENT):
			fmt.Println("refused")
		default:
			fmt.Println(err)
		}
	}
})

// meeting is a session without namespaces, in a directory.
type meeting struct {
	t   *testing.T
	s   *Session
	dir string
}

func newMeeting(t *testing.T, p Policy, w walls, dir string) meeting {
	t.Helper()
	s, err := attackSandbox(t, p, w).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return meeting{t, s, dir}
}

func (m meeting) command(args ...string) *Cmd {
	c := m.s.program(args...)
	c.Dir = m.dir
	return c
}

// dials returns how many of the sockets of a server at this port serve a command of the session; the others refuse.
func (m meeting) dials(port int) (served int) {
	m.t.Helper()
	out, err := m.command("session dials", strconv.Itoa(port)).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, l := range lines {
		if l == "served <nil>" {
			served++
		} else if l != "refused" {
			err = errors.Join(err, errors.New(l))
		}
	}
	if err != nil || len(lines) != 4 {
		m.t.Errorf("%q, %v", out, err)
	}
	return served
}

// TestKernelCommandsOfASessionMeetAtSockets: without namespaces, too, what one command of a session serves another one reaches, at TCP and UNIX sockets, and
// takes over when it has ended. No other session does, in the same directory, and no server of the host's is reached at a port that one has given up.
func TestKernelCommandsOfASessionMeetAtSockets(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		p, dir := barePolicy(t, w)
		m, other := newMeeting(t, p, w, dir), newMeeting(t, p, w, dir)
		was := 0
		out := meetTool(t, m.command("session sockets", "127.0.0.1:0"), "port", func(port int) {
			was = port
			if err := m.s.WaitPort(t.Context(), uint16(port)); err != nil {
				t.Error(err)
			}
			ports, err := m.s.Ports()
			if len(ports) != 1 || int(ports[0].Port) != port || !ports[0].Address.IsLoopback() {
				t.Errorf("the session's ports: %+v, %v", ports, err)
			}
			if ports, err = other.s.Ports(); len(ports) != 0 || err != nil {
				t.Errorf("the other session's ports: %+v, %v", ports, err)
			}
			if n := m.dials(port); n != 4 {
				t.Errorf("of four sockets of a session's server %d serve", n)
			}
			if n := other.dials(port); n != 0 {
				t.Errorf("ESCAPE: another session reaches %d of them", n)
			}
			if out, _ := m.command("session sockets", "127.0.0.1:"+strconv.Itoa(port)).Output(); !strings.Contains(string(out), "address already in use") {
				t.Errorf("a second server: %q", out)
			}
		})
		if out != "" {
			t.Error(out)
		}
		os.Remove(filepath.Join(dir, socketFile))
		if out := meetTool(t, m.command("session sockets", "127.0.0.1:"+strconv.Itoa(was)), "port", func(port int) {
			if n := m.dials(port); n != 4 || port != was {
				t.Errorf("of four sockets of the next server, at %d and not %d, %d serve", port, was, n)
			}
		}); out != "" {
			t.Error(out)
		}
		if n := m.dials(was); n != 0 {
			t.Errorf("%d sockets of servers that have ended serve", n)
		}
	})
}

// TestKernelAttackAPortOfADeadCommand: a port is held for a session when the supervisor that held it is killed, so that no server of the
// host's has it while commands connect to it; and once it is free they do not.
func TestKernelAttackAPortOfADeadCommand(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		p, dir := barePolicy(t, w)
		m := newMeeting(t, p, w, dir)
		c := m.command("session sockets", "0.0.0.0:0")
		in, err1 := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err1, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		port := 0
		line, err := bufio.NewReader(out).ReadString('\n')
		if _, err2 := fmt.Sscanf(line, "port %d", &port); err != nil || err2 != nil {
			t.Fatalf("%q, %v", line, err)
		}
		everywhere := "0.0.0.0:" + strconv.Itoa(port)
		if err := m.command("kill the warden").Run(); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err == nil {
			t.Error("its warden was killed, and the command has not failed")
		}
		if l, err := net.Listen("tcp4", everywhere); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("the port is not held: %v", err)
			l.Close()
		}
		if n := m.dials(port); n != 0 {
			t.Errorf("%d sockets of a server that was killed serve", n)
		}
		l, err := net.Listen("tcp4", everywhere)
		if errors.Is(err, unix.EADDRINUSE) {
			t.Logf("another program has the port now: %v", err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if n := m.dials(port); n != 0 {
			t.Errorf("ESCAPE: %d sockets serve", n)
		}
		heardNothing(t, l)
	})
}

var _ = offer(programs, "kill the warden", func([]string) {
	text, err := os.ReadFile("warden")
	number, err2 := strconv.Atoi(string(text))
	if err := errors.Join(err, err2); err != nil || unix.Kill(number, unix.SIGKILL) != nil {
		println("not killed")
		os.Exit(1)
	}
})

// TestKernelWaitPortWhereNoToolServes says so at once: without namespaces, and without names to protect.
func TestKernelWaitPortWhereNoToolServes(t *testing.T) {
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		s, err := attackSandbox(t, attackPolicy(t, "", w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var none *policy.UnsupportedError
		if err := s.WaitPort(t.Context(), 8080); !errors.As(err, &none) || none.Bound != policy.BoundNetwork {
			t.Errorf("%v", err)
		}
	})
}
