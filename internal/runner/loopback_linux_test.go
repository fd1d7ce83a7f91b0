package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A dialled is a server as the supervisor binds it, of a sandbox that is this process, and what a dial meets.
type dialled struct {
	*testing.T
	l       net.Listener
	members []policy.Process
	looks   int
	look    func(n int) // before the processes are listed for the nth time
	dialing func()      // between the look for the server and the connect
}

// serveAt listens at the address that stands for 127.0.0.1, or for ::1, of a supervisor with this process' number.
func serveAt(t *testing.T, second byte, port int) net.Listener {
	t.Helper()
	pid := os.Getpid()
	l, err := net.Listen("tcp4", fmt.Sprintf("127.%d.%d.%d:%d", 128|second<<6|byte(pid>>16)&63, byte(pid>>8), byte(pid), port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func newDialled(t *testing.T) *dialled {
	return &dialled{T: t, l: serveAt(t, 0, 0), members: []policy.Process{{Outside: os.Getpid()}}}
}

func (d *dialled) port() uint16 { return uint16(d.l.Addr().(*net.TCPAddr).Port) }

// swapping is a context that does something when net.Dialer asks for its deadline, which is before it connects.
type swapping struct {
	context.Context
	swap func()
}

func (s swapping) Deadline() (time.Time, bool) {
	s.swap()
	return s.Context.Deadline()
}

func (d *dialled) dial(to string) (net.Conn, error) {
	dialer := directDialer{func() []policy.Process {
		if d.looks++; d.look != nil {
			d.look(d.looks)
		}
		return d.members
	}}
	swap := sync.OnceFunc(func() {
		if d.dialing != nil {
			d.dialing()
		}
	})
	return dialer.dial(swapping{d.Context(), swap}, netip.AddrPortFrom(netip.MustParseAddr(to), d.port()))
}

// refused: nothing was connected to, as far as the caller knows.
func (d *dialled) refused(to string) {
	d.Helper()
	if c, err := d.dial(to); !errors.Is(err, syscall.ECONNREFUSED) {
		d.Errorf("%v, %v", c, err)
	}
}

// heardNothing: no connection waits at a listener.
func (d *dialled) heardNothing(l net.Listener) {
	d.Helper()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n != 0 || err != nil {
				d.Errorf("%s was connected to (%d, %v)", l.Addr(), n, err)
			}
		})
	}
	if err != nil {
		d.Error(err)
	}
}

// leave gives the listener to another process alone, which is the sandbox from then on, and returns what ends it.
func (d *dialled) leave() (end func()) {
	d.Helper()
	f, err := d.l.(*net.TCPListener).File()
	if err != nil {
		d.Fatal(err)
	}
	c := exec.Command("sleep", "1000")
	c.ExtraFiles = []*os.File{f}
	if err := c.Start(); err != nil {
		d.Fatal(err)
	}
	f.Close()
	d.l.Close()
	d.members[0].Outside = c.Process.Pid
	end = sync.OnceFunc(func() {
		c.Process.Kill()
		c.Wait()
	})
	d.Cleanup(end)
	return end
}

func TestADirectDialReachesAServerOfTheSandbox(t *testing.T) {
	d := newDialled(t)
	serveAt(t, 1, int(d.port()))
	for to, second := range map[string]byte{"127.0.0.1": 0, "::1": 1} {
		c, err := d.dial(to)
		if err != nil {
			t.Fatal(err)
		}
		if at := c.RemoteAddr().(*net.TCPAddr).IP.To4(); at[1]>>6&1 != second {
			t.Errorf("%s is %s", to, at)
		}
		c.Close()
	}
}

// TestADirectDialReachesAServerOfOneConnection, as of nc -l: its listener is closed when the harness looks once more.
func TestADirectDialReachesAServerOfOneConnection(t *testing.T) {
	d := newDialled(t)
	d.look = func(n int) {
		if n != 2 {
			return
		}
		served, err := d.l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { served.Close() })
		d.l.Close()
	}
	c, err := d.dial("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if d.looks != 3 {
		t.Errorf("it has looked %d times", d.looks)
	}
}

// TestADirectDialReachesNoOther server than the sandbox's.
func TestADirectDialReachesNoOther(t *testing.T) {
	t.Run("another process has the address", func(t *testing.T) {
		d := newDialled(t)
		d.members = nil
		d.refused("127.0.0.1")
		d.heardNothing(d.l)
	})
	t.Run("a process of the sandbox was given a listener of the machine's", func(t *testing.T) {
		d := newDialled(t)
		d.l = nil
		var err error
		if d.l, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		defer d.l.Close()
		d.refused("127.0.0.1")
		d.heardNothing(d.l)
	})
	t.Run("it is not at ::1", func(t *testing.T) {
		d := newDialled(t)
		d.refused("::1")
		d.heardNothing(d.l)
	})
	for _, accepts := range []bool{false, true} {
		t.Run(fmt.Sprintf("another takes its address before the connect, and accepts: %t", accepts), func(t *testing.T) {
			d := newDialled(t)
			port, end := int(d.port()), d.leave()
			accepted := make(chan net.Conn, 1)
			d.dialing = func() {
				end()
				l := serveAt(t, 0, port)
				if !accepts {
					return
				}
				go func() {
					c, err := l.Accept()
					if err != nil {
						t.Error(err)
					}
					accepted <- c
				}()
			}
			d.refused("127.0.0.1")
			if accepts {
				if c := <-accepted; c != nil {
					c.Close()
				}
			}
		})
	}
	t.Run("it ends before the connect", func(t *testing.T) {
		d := newDialled(t)
		d.dialing = func() { d.l.Close() }
		d.refused("127.0.0.1")
	})
}

func TestWhatProvesAConnection(t *testing.T) {
	made := func(local, remote, state string, inode uint64) socket {
		at := netip.MustParseAddrPort(local)
		return socket{policy.Port{Port: at.Port(), Address: at.Addr()}, netip.MustParseAddrPort(remote), state, inode}
	}
	const at, client, none, established = "127.130.4.9:4000", "127.0.0.1:52000", "0.0.0.0:0", "01"
	server := made(at, none, stateListen, 7)
	for _, test := range []struct {
		name   string
		is     socket
		proves bool
	}{
		{"the server listens", server, true},
		{"another that has come to listen there", made(at, none, stateListen, 8), false},
		{"the server elsewhere", made("127.130.4.9:4001", none, stateListen, 7), false},
		{"the accepted connection", made(at, client, established, 9), true},
		{"and of IPv6", made("[::ffff:127.130.4.9]:4000", "[::ffff:127.0.0.1]:52000", established, 9), true},
		{"one that waits to be accepted", made(at, client, established, 0), false},
		{"another client's", made(at, "127.0.0.1:52001", established, 9), false},
		{"the client's to another server", made("127.130.4.8:4000", client, established, 9), false},
	} {
		if got := test.is.proves(server, netip.MustParseAddrPort(client)); got != test.proves {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
