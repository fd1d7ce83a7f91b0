package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// dialsInside returns what the session's server says; "": there is none.
func (m meeting) dialsInside(port uint16) string {
	m.t.Helper()
	c, err := m.s.DialInside(m.t.Context(), port)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return ""
	}
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	out, err := io.ReadAll(c)
	if err != nil {
		m.t.Error(err)
	}
	return string(out)
}

// serves runs a server of one command until end is called.
func (m meeting) serves(port uint16) (at netip.Addr, end func()) {
	m.t.Helper()
	c := m.command("session sockets", fmt.Sprint("127.0.0.1:", port))
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		m.t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != fmt.Sprintln("port", port) { // it has all of its sockets
		in.Close()
		m.t.Fatalf("%q, %v", line, c.Wait())
	}
	if err := m.s.WaitPort(m.t.Context(), port); err != nil {
		m.t.Fatal(err)
	}
	ports, err := m.s.Ports()
	if len(ports) != 1 || ports[0].Port != port {
		m.t.Fatalf("%+v, %v", ports, err)
	}
	return ports[0].Address.Unmap(), func() {
		in.Close()
		if err := c.Wait(); err != nil {
			m.t.Error(err)
		}
		os.Remove(m.dir + "/" + socketFile)
	}
}

// TestKernelAttackTheHarnessThatDials: without namespaces DialInside and Forward lead to the session's own server, which is on the machine's loopback, and to no
// other there: neither one of the machine's, nor another session's at the same port, nor one that has taken the address of a server that has ended.
func TestKernelAttackTheHarnessThatDials(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		port := portForTool(t)
		p, dir := barePolicy(t, w)
		p.Network.Listen = []uint16{port}
		machines := waitAt(t, "tcp", fmt.Sprint("127.0.0.1:", port))
		other, m := newMeeting(t, p, w, dir), newMeeting(t, p, w, dir)
		_, endOther := other.serves(port)
		os.Remove(dir + "/" + socketFile)
		if out := m.dialsInside(port); out != "" {
			t.Errorf("ESCAPE: without a server of the session's one says %q", out)
		}
		for range 2 {
			at, end := m.serves(port)
			if out := m.dialsInside(port); out != "served" {
				t.Errorf("the session's server says %q", out)
			}
			end()
			// A command that uses a socket has the supervisor let go of the port.
			if n := m.dials(int(port)); n != 0 {
				t.Errorf("%d sockets of a server that has ended serve", n)
			}
			l := waitAt(t, "tcp", netip.AddrPortFrom(at, port).String())
			if out := m.dialsInside(port); out != "" {
				t.Errorf("ESCAPE: a server that has taken the address says %q", out)
			}
			forwarded(t, m.s, port)
			heardNothing(t, l)
			l.Close()
		}
		endOther()
		heardNothing(t, machines)
	})
}

// forwarded: what Forward opens leads nowhere.
func forwarded(t *testing.T, s *Session, port uint16) {
	t.Helper()
	at, err := s.Forward(port)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", at.String())
	if err == nil {
		defer c.Close()
		_, err = io.ReadAll(c)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("ESCAPE: a client of the forwarded port: %v", err)
	}
}

// TestKernelListenIsRefusedWithoutASupervisor that makes the tools' servers: where files are open there is none.
func TestKernelListenIsRefusedWithoutASupervisor(t *testing.T) {
	eachWall(t, bareWalls[1:], func(t *testing.T, w walls) {
		p := Policy{Open: []Bound{policy.BoundFiles}, May: []Bound{policy.BoundProcesses}, Network: Network{Listen: []uint16{8000}}}
		var not *UnsupportedError
		if _, err := New(p); !errors.As(err, &not) || !strings.Contains(err.Error(), "Network.Listen") {
			t.Errorf("%v", err)
		}
		p.May = append(p.May, policy.BoundNetwork)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		c := hostile(t, s, "answer")
		in := must(c.StdinPipe())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.DialInside(t.Context(), 8000); !errors.As(err, &not) {
			t.Errorf("%v", err)
		}
		in.Close()
		c.Wait()
	})
}
