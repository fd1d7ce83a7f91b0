package stage

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// eachUser runs body as root and as an ordinary user, where there are namespaces.
func eachUser(t *testing.T, body func(t *testing.T)) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			body(t)
		})
	})
}

// answer says "pong" to the first who says "ping" at the listener in slot 0.
func (i *insider) answer() {
	i.t.Helper()
	f := i.c.Received(0)
	if f == nil {
		i.t.Fatal("nothing has come up")
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		i.t.Fatal(err)
	}
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		i.t.Fatal(err)
	}
	defer c.Close()
	ping := make([]byte, 4)
	if _, err := io.ReadFull(c, ping); err != nil || string(ping) != "ping" {
		i.t.Errorf("%q, %v", ping, err)
	}
	io.WriteString(c, "pong")
}

// TestKernelTheHarnessServesAListenerInside: the tool reaches it at the address
// inside, the harness accepts, and at the same address outside there is nothing.
func TestKernelTheHarnessServesAListenerInside(t *testing.T) {
	tests := []struct {
		name          string
		listen        plan.Listen
		dial, network string
	}{
		{"IPv4", tcpAt("127.0.0.1:3128", 0), "127.0.0.1:3128", "tcp4"},
		{"IPv6", plan.Listen{Network: "tcp6", Addr: netip.MustParseAddrPort("[::1]:1080")}, "[::1]:1080", "tcp6"},
		{"a port for which one needs to be root", tcpAt("127.0.0.1:80", 0), "127.0.0.1:80", "tcp4"},
		{"a path", plan.Listen{Network: "unix", Path: "/run/a/agent", Mode: 0o600}, "/run/a/agent", "unix"},
		{"a path in a private directory", plan.Listen{Network: "unix", Path: "/tmp/agent", Mode: 0o600}, "/tmp/agent", "unix"},
		{"a path longer than a socket's address", plan.Listen{Network: "unix", Path: "/tmp/" + strings.Repeat("long/", 40) + "agent", Mode: 0o600}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				if test.dial == "" {
					i := begin(t, walls([]plan.Action{test.listen}, nil), "mode", test.listen.Path).held()
					if got := i.end(); got != "Srw-------" {
						t.Error(got)
					}
					return
				}
				i := begin(t, walls([]plan.Action{test.listen}, nil), "talk", test.network, test.dial).held()
				if c, err := net.Dial(test.network, test.dial); err == nil {
					c.Close()
					t.Error("it can be reached outside")
				}
				i.answer()
				if got := i.end(); got != "pong" {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// TestKernelAToolThatIsTheFirstProcessIsServedToo: init's steps are then the tool's.
func TestKernelAToolThatIsTheFirstProcessIsServedToo(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		p := walls([]plan.Action{tcpAt("127.0.0.1:3128", 0), plan.Listen{Network: "unix", Path: "/tmp/agent", Mode: 0o600, Slot: 1}}, nil)
		p.AsPID1 = true
		for n, s := range p.Steps {
			if s.Do == (plan.Loopback{}) {
				p.Steps[n].Do = plan.Loopback{Here: true}
			}
		}
		i := begin(t, p, "talk", "tcp4", "127.0.0.1:3128").held()
		i.answer()
		if got := i.end(); got != "pong" {
			t.Errorf("%q", got)
		}
		i = begin(t, p, "files").held()
		if out := i.end(); strings.Contains(out, "socket:") || !strings.Contains(out, "0 pipe:") {
			t.Error(out)
		}
	})
}

// TestKernelADatagramSocketInsideIsServed as a DNS server would be.
func TestKernelADatagramSocketInsideIsServed(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		i := begin(t, walls([]plan.Action{plan.Listen{Network: "udp4", Addr: netip.MustParseAddrPort("127.0.0.1:53")}}, nil), "talk", "udp4", "127.0.0.1:53").held()
		f := i.c.Received(0)
		if f == nil {
			t.Fatal("nothing has come up")
		}
		defer f.Close()
		c, err := net.FilePacketConn(f)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b := make([]byte, 16)
		n, from, err := c.ReadFrom(b)
		if err != nil || string(b[:n]) != "ping" {
			t.Fatalf("%q, %v", b[:n], err)
		}
		c.WriteTo([]byte("pong"), from)
		if got := i.end(); got != "pong" {
			t.Errorf("%q", got)
		}
	})
}

// TestKernelNobodyInsideKeepsAListener: neither the tool nor init has it, so once
// the harness has closed its own, nobody listens.
func TestKernelNobodyInsideKeepsAListener(t *testing.T) {
	listeners := []plan.Action{tcpAt("127.0.0.1:3128", 0), plan.Listen{Network: "unix", Path: "/tmp/agent", Mode: 0o600, Slot: 1}}
	t.Run("the tool's descriptors", func(t *testing.T) {
		eachUser(t, func(t *testing.T) {
			i := begin(t, walls(listeners, nil), "files").held()
			if out := i.end(); strings.Contains(out, "socket:") || !strings.Contains(out, "0 pipe:") {
				t.Error(out)
			}
		})
	})
	t.Run("init's", func(t *testing.T) {
		eachUser(t, func(t *testing.T) {
			i := begin(t, walls(listeners, nil), "wait").held()
			defer i.end()
			for slot, path := range []string{"127.0.0.1:3128", "/tmp/agent"} {
				f := i.c.Received(slot)
				if f == nil {
					t.Fatalf("nothing in slot %d", slot)
				}
				var a, b unix.Stat_t
				if err := unix.Fstat(int(f.Fd()), &a); err != nil {
					t.Fatal(err)
				}
				f.Close()
				if os.Geteuid() != 0 {
					continue // an ordinary user's init shows its descriptors to nobody; the next test is for it
				}
				i.c.AwaitEvidence()
				open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", i.c.PID()))
				for _, fd := range open {
					if unix.Stat(fd, &b) == nil && a.Ino == b.Ino {
						t.Errorf("init has %s open", path)
					}
				}
				if len(open) == 0 {
					t.Error("init has nothing open, which cannot be")
				}
			}
		})
	})
	for network, addr := range map[string]string{"tcp4": "127.0.0.1:3128", "unix": "/tmp/agent"} {
		t.Run("who dials "+network, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				i := begin(t, walls(listeners, nil), "talklater", network, addr).held()
				i.c.Received(0).Close()
				i.c.Received(1).Close()
				i.in.Write([]byte("\n"))
				if got := i.end(); !strings.Contains(got, "connection refused") {
					t.Error(got)
				}
			})
		})
	}
}

// TestKernelAListenerThatCannotBeMadeStopsTheRun and the failure says which step
// it was.
func TestKernelAListenerThatCannotBeMadeStopsTheRun(t *testing.T) {
	tests := []struct {
		name          string
		before, after []plan.Action
		errno         unix.Errno
	}{
		{"a port that is taken", []plan.Action{tcpAt("127.0.0.1:80", 0), tcpAt("127.0.0.1:80", 1)}, nil, unix.EADDRINUSE},
		{"an address that is nobody's", []plan.Action{tcpAt("192.0.2.1:80", 1)}, nil, unix.EADDRNOTAVAIL},
		{"a path that is taken", []plan.Action{plan.MakeFile{Path: "/run/agent"}, plan.Listen{Network: "unix", Path: "/run/agent", Slot: 1}}, nil, unix.EADDRINUSE},
		{"a path that a link has", []plan.Action{plan.MakeLink{Path: "/run/agent", Target: "/tmp/x"}, plan.Listen{Network: "unix", Path: "/run/agent", Slot: 1}}, nil, unix.EADDRINUSE},
		{"a path below a file", []plan.Action{plan.MakeFile{Path: "/run"}, plan.Listen{Network: "unix", Path: "/run/agent", Slot: 1}}, nil, unix.ENOTDIR},
		{"a path in a root that is sealed", nil, []plan.Action{plan.SealRoot{}, plan.Listen{Network: "unix", Path: "/agent", Slot: 1}}, unix.EROFS},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				i := begin(t, walls(test.before, test.after), "files")
				if i.c.Started || i.c.Failed == nil || i.c.Failed.Errno != test.errno || !strings.HasPrefix(i.failed(), "listen at ") {
					t.Errorf("started %v, %q: %+v", i.c.Started, i.failed(), i.c.Failed)
				}
				if out := i.end(); out != "" {
					t.Errorf("the tool ran: %s", out)
				}
			})
		})
	}
}

// TestKernelWhatNobodyTakesIsClosed, whatever became of the run: the harness has
// as many descriptors as before.
func TestKernelWhatNobodyTakesIsClosed(t *testing.T) {
	var many []plan.Action
	for slot := range plan.MaxSlots {
		many = append(many, plan.Listen{Network: "tcp4", Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(1000+slot)), Slot: slot})
	}
	broken := append([]plan.Action{tcpAt("127.0.0.1:80", 0)}, tcpAt("192.0.2.1:80", 1))
	runs := []struct {
		name    string
		actions []plan.Action
		do      func(t *testing.T, i *insider)
	}{
		{"nobody asks", many, func(t *testing.T, i *insider) { i.held() }},
		{"some are taken", many, func(t *testing.T, i *insider) { i.held().c.Received(7).Close() }},
		{"the run failed after the first", broken, func(t *testing.T, i *insider) {
			if i.c.Failed == nil {
				t.Error("it did not fail")
			}
		}},
		{"nobody reads", many, func(t *testing.T, i *insider) { i.c.Close() }},
	}
	for _, test := range runs {
		t.Run(test.name, func(t *testing.T) {
			eachUser(t, func(t *testing.T) {
				begin(t, walls(many, nil), "files").held().end() // the image, the poller
				before := sockets(t)
				i := begin(t, walls(test.actions, nil), "files")
				test.do(t, i)
				i.end()
				i.c.Close()
				if f := i.c.Received(3); f != nil {
					t.Error("something is left after Close")
				}
				if after := sockets(t); before != after {
					t.Errorf("%d sockets before, %d after", before, after)
				}
			})
		})
	}
}

// TestKernelEverySlotHasRoom even while nobody reads: init does not wait.
func TestKernelEverySlotHasRoom(t *testing.T) {
	var many []plan.Action
	for slot := range plan.MaxSlots {
		many = append(many, plan.Listen{Network: "tcp4", Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(1000+slot)), Slot: slot})
	}
	eachUser(t, func(t *testing.T) {
		i := beginWith(t, walls(many, nil), func(i *insider) { i.cmd.Wait() }, "files")
		i.c.AwaitStart()
		i.held()
		for slot := range plan.MaxSlots {
			f := i.c.Received(slot)
			if f == nil {
				t.Fatalf("nothing in slot %d", slot)
			}
			f.Close()
		}
	})
}

// sockets counts this process's.
func sockets(t *testing.T) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestKernelADescriptorThatDoesNotArriveStopsTheRun: a harness that has as many
// as it may is told that nothing could be passed, not handed a run without it.
func TestKernelADescriptorThatDoesNotArriveStopsTheRun(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		var i *insider
		for early := true; early; { // init may be faster than the stage, which sends init's pidfd
			i = beginWith(t, walls([]plan.Action{tcpAt("127.0.0.1:80", 5)}, nil), func(i *insider) {
				// From here on the next descriptor would be one too many. What was
				// given for init's pidfd is taken first.
				for i.c.init == nil && i.c.next() == nil {
				}
				if l := i.c.Received(5); l != nil {
					l.Close()
					return
				}
				early = false
				var old unix.Rlimit
				if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{}, &old); err != nil {
					t.Fatal(err)
				}
				defer unix.Prlimit(0, unix.RLIMIT_NOFILE, &old, nil)
				i.c.AwaitStart()
			}, "wait")
		}
		if i.c.Started || i.c.Failed == nil || i.c.Failed.Errno != unix.EMFILE || !strings.HasPrefix(i.failed(), "listen at ") {
			t.Errorf("started %v, %q: %+v", i.c.Started, i.failed(), i.c.Failed)
		}
		i.cmd.Wait() // its input stays open: the tool, if there were one, would live
		i.c.Drain()
		if i.c.Started {
			t.Error("held after all")
		}
	})
}

func init() {
	wait := func(args []string) error { _, err := io.Copy(io.Discard, os.Stdin); return err }
	moreTools["wait"] = wait
	moreTools["talklater"] = func(args []string) error { // when a byte has come
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
			return err
		}
		return beTestTool(append([]string{"talk"}, args...))
	}
}
