package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

const deviceNode = "/dev/net/tun"

// hasDevice is the fact that this user may open the TUN driver's node.
var hasDevice = kerneltest.Fact{Name: deviceNode, Check: func() error {
	fd, err := unix.Open(deviceNode, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}}

// inWorld runs body in a child, as root and as an ordinary user, who gets a TUN
// driver's node that everybody may open, as on most hosts, in mounts of the test's
// own, if root runs the test.
func inWorld(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	t.Run("as root", func(t *testing.T) {
		kerneltest.Root.Wanted(t)
		kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, hasDevice)
			body(t)
		})
	})
	t.Run("as an ordinary user", func(t *testing.T) {
		kerneltest.Ordinary.Wanted(t)
		kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			if os.Geteuid() == 0 {
				kerneltest.Need(t, hasDevice)
				becomeNobody(t)
			}
			kerneltest.Need(t, hasDevice)
			body(t)
		})
	})
}

// InSandboxWorld is inWorld for the package's outside tests.
func InSandboxWorld(t *testing.T, body func(t *testing.T)) { inWorld(t, body) }

// becomeNobody gives root's privileges up. It holds for the thread that the test
// is locked to, and for what is started from it.
func becomeNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	toolFile = "/dev/net/tool"
	for _, s := range []struct {
		name string
		err  error
	}{
		{"unshare", unix.Unshare(unix.CLONE_NEWNS)},
		{"private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")},
		{"a tmpfs", unix.Mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755")},
		{"the device", unix.Mknod(deviceNode, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200)))},
		{"its mode", os.Chmod(deviceNode, 0o666)},
		{"a place for the tool", os.WriteFile(toolFile, nil, 0o600)},
		{"the tool, whose directory is closed to others", unix.Mount(exe, toolFile, "", unix.MS_BIND, "")},
		{"its home", os.Chown(os.Getenv("HOME"), nobody, nobody)},
		{"its files", os.Chown(os.Getenv("TMPDIR"), nobody, nobody)},
		{"groups", rawIDs(unix.SYS_SETGROUPS, 0, 0, 0)},
		{"the group", rawIDs(unix.SYS_SETRESGID, nobody, nobody, nobody)},
		{"the user", rawIDs(unix.SYS_SETRESUID, nobody, nobody, nobody)},
		{"dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)},
	} {
		if s.err != nil {
			t.Fatalf("%s: %v", s.name, s.err)
		}
	}
}

// rawIDs changes this thread's ids alone.
func rawIDs(nr, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(nr, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// A world is a tool in its namespace, and what the harness has of it.
type world struct {
	t    *testing.T
	gate *testGate
	wire *os.File
	stop func()
	end  func() // stops, and ends the tool
}

// newWorld starts a tool and captures what it sends.
func newWorld(t *testing.T) *world {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "wire"), os.NewFile(uintptr(pair[1]), "wire")
	cmd := exec.Command(Exe())
	cmd.Args = []string{insideArg}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		Pdeathsig:   syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	w := &world{t: t, gate: newTestGate(t), wire: ours}
	w.stop = func() {}
	w.end = sync.OnceFunc(func() { w.stop(); ours.Close(); cmd.Wait() })
	t.Cleanup(w.end)
	w.stop, err = Netstack(w.device(), w.gate.capture())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// device takes the descriptor that the tool passes up.
func (w *world) device() *os.File {
	w.t.Helper()
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, rn, _, _, err := unix.Recvmsg(int(w.wire.Fd()), text, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		w.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:rn])
	if err != nil || len(messages) != 1 {
		w.t.Fatalf("no device: %s, %v", text[:n], err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "tun0")
}

// tell has the tool do something and returns what it saw.
func (w *world) tell(o order) result {
	w.t.Helper()
	text, err := json.Marshal(o)
	if err == nil {
		_, err = w.wire.Write(text)
	}
	buf := make([]byte, 1<<16)
	n := 0
	if err == nil {
		n, err = w.wire.Read(buf)
	}
	var r result
	if err == nil {
		err = json.Unmarshal(buf[:n], &r)
	}
	if err != nil {
		w.t.Fatalf("%+v: %v", o, err)
	}
	return r
}

// A testGate allows what is in its table, and notes everything.
type testGate struct {
	t *testing.T
	// to leads from what may be connected to, as a name or an address and a port,
	// to what is dialled for it. One that leads to nothing is dialled for ever.
	to map[string]string
	// udp does so for datagrams. "*" leads to nothing, from wherever.
	udp map[string]string

	mu      sync.Mutex
	denied  []denial
	tunnels []string
}

func newTestGate(t *testing.T) *testGate {
	return &testGate{t: t, to: map[string]string{}, udp: map[string]string{}}
}

func (g *testGate) capture() policy.CaptureGate {
	return policy.CaptureGate{Allowed: g.allowed, Datagrams: g.datagrams, Tunnel: g.tunnel, Denied: g.note, Address: testNet, MTU: testMTU}
}

func (g *testGate) allowed(host string, port uint16) bool {
	for target := range g.targets(port) {
		if h, p, err := net.SplitHostPort(target); err == nil && h == host && (port == 0 || p == fmt.Sprint(port)) {
			return true
		}
	}
	return false
}

// targets are those of a question about a port, or, without one, about all.
func (g *testGate) targets(port uint16) map[string]string {
	all := maps.Clone(g.to)
	if port == 0 {
		maps.Copy(all, g.udp)
	}
	return all
}

func (g *testGate) datagrams(host string, port uint16) bool {
	_, known := g.udp[net.JoinHostPort(host, fmt.Sprint(port))]
	_, every := g.udp["*"]
	return known || every
}

// carry is tunnel for datagrams, with what package proxy does of them in short.
func (g *testGate) carry(ctx context.Context, c net.Conn, key string) error {
	to := g.udp[key]
	if to == "" {
		<-ctx.Done()
		return nil
	}
	out, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { out.Close(); c.Close() })()
	go func() {
		c.(io.WriterTo).WriteTo(out)
		out.Close()
	}()
	b := make([]byte, 1<<16)
	for {
		n, err := out.Read(b)
		if errors.Is(err, unix.ECONNREFUSED) {
			return err
		} else if err != nil {
			return nil
		}
		c.Write(b[:n])
	}
}

func (g *testGate) tunnel(ctx context.Context, c net.Conn, host string, port uint16, protocol string) error {
	defer c.Close()
	target := netip.AddrPort{}
	key := net.JoinHostPort(host, fmt.Sprint(port))
	address, known := g.to[key]
	g.mu.Lock()
	g.tunnels = append(g.tunnels, protocol+" "+key)
	g.mu.Unlock()
	if protocol == "udp" {
		return g.carry(ctx, c, key)
	}
	if !known {
		g.note(protocol, host, port, "no rule")
		return fmt.Errorf("denied: %s", key)
	}
	if address == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	var err error
	if target, err = netip.ParseAddrPort(address); err != nil {
		return err
	}
	out, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(target))
	if err != nil {
		return err
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { out.Close(); c.Close() })()
	half := make(chan struct{})
	go func() {
		defer close(half)
		io.Copy(out, c)
		out.CloseWrite()
	}()
	io.Copy(c, out)
	c.(interface{ CloseWrite() error }).CloseWrite()
	<-half
	return nil
}

func (g *testGate) note(protocol, host string, port uint16, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = append(g.denied, denial{protocol, host, port, why})
}

// wantDenied fails unless exactly one denial of this kind was noted.
func (g *testGate) wantDenied(protocol, host string, port uint16) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, d := range g.denied {
		if d.protocol == protocol && d.host == host && d.port == port {
			n++
		}
	}
	if n != 1 {
		g.t.Errorf("%s to %s, port %d, was noted %d times: %+v", protocol, host, port, n, g.denied)
	}
}

// dialled returns what was asked of the gate.
func (g *testGate) dialled() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.tunnels)
}

// serve answers every connection to a loopback socket of its own by a function,
// and returns its address.
func serve(t *testing.T, with func(c *net.TCPConn)) string {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); with(c) }()
		}
	}()
	return l.Addr().String()
}

// serveUDP answers every datagram to a loopback socket of its own by itself, and
// returns its address and who has sent, from how many ports.
func serveUDP(t *testing.T) (address string, senders func() int) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var mu sync.Mutex
	from := map[netip.AddrPort]bool{}
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, a, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			mu.Lock()
			from[a] = true
			mu.Unlock()
			c.WriteToUDPAddrPort(b[:n], a)
		}
	}()
	return c.LocalAddr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(from)
	}
}

// echo says what it hears.
func echo(c *net.TCPConn) { io.Copy(c, c) }
