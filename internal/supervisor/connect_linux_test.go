package supervisor

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"golang.org/x/sys/unix"
)

// server accepts at an address and counts.
type server struct {
	net.Listener
	accepted atomic.Int64
	done     sync.WaitGroup
}

func serverAt(t *testing.T, addr string) *server {
	t.Helper()
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l)
}

func serve(t *testing.T, l net.Listener) *server {
	s := &server{Listener: l}
	s.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			c.Close()
		}
	})
	t.Cleanup(s.end)
	return s
}

// end closes the listener once what had come before is counted.
func (s *server) end() {
	s.Close()
	s.done.Wait()
}

func (s *server) port() int { return s.Addr().(*net.TCPAddr).Port }

func loopback(ports ...int) []Endpoint {
	list := []Endpoint{}
	for _, p := range ports {
		list = append(list, Endpoint{[4]byte{127, 0, 0, 1}, uint16(p)})
	}
	return list
}

// unsharesFiles is not so under Docker's filter, without CAP_SYS_ADMIN.
var unsharesFiles = kerneltest.Fact{Name: "unshare(2) of a table of descriptors", Since: kerneltest.Version{Major: 2, Minor: 6}, Check: func() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // which ends the thread with the goroutine
		done <- unix.Unshare(unix.CLONE_FILES)
	}()
	return <-done
}}

// TestKernelConnects: what is allowed works, by every spelling of it; everything else is refused, and nobody
// who listens elsewhere hears anything.
func TestKernelConnects(t *testing.T) {
	kerneltest.Long(t)
	for user, uid := range users(t) {
		for _, act := range []string{"connects", "flipconnect", "flipdescriptor", "owntable", "ownsockets"} {
			t.Run(act+" "+user, func(t *testing.T) {
				if act == "owntable" {
					kerneltest.Need(t, unsharesFiles)
				}
				good, bad := serverAt(t, "127.0.0.1:0"), serverAt(t, "127.0.0.1:0")
				other := serverAt(t, fmt.Sprintf("127.0.0.2:%d", good.port()))
				dir, rules := workspace(t, uid)
				for _, r := range []Rules{{Connects: loopback(good.port())}, {Roots: rules.Roots, Names: rules.Names, MemFile: true, Connects: loopback(1, 2, good.port(), 3)}} {
					script := fmt.Sprintf(`"$SELF" %s %d %d`, act, good.port(), bad.port())
					out, code := run(t, job{Rules: r, Dir: dir, UID: uid, NoCalls: r.MemFile, Argv: []string{"bash", "-ec", script}, Env: []string{roleEnv + "=act"}})
					if code != 0 || strings.Contains(out, "supervisor test:") {
						t.Errorf("exit %d\n%s", code, out)
					}
				}
				for _, s := range []*server{good, bad, other} {
					s.end()
				}
				if bad.accepted.Load() != 0 || other.accepted.Load() != 0 || good.accepted.Load() == 0 {
					t.Errorf("%d at the allowed address, %d at another port, %d at another address", good.accepted.Load(), bad.accepted.Load(), other.accepted.Load())
				}
			})
		}
	}
}

// TestKernelNothingIsConnectedWhereNothingIsAllowed: an empty list is not none.
func TestKernelNothingIsConnectedWhereNothingIsAllowed(t *testing.T) {
	s := serverAt(t, "127.0.0.1:0")
	dir, rules := workspace(t, self)
	try := job{Dir: dir, UID: self, Argv: []string{"bash", "-c", fmt.Sprintf("echo >/dev/tcp/127.0.0.1/%d", s.port())}}
	for _, c := range []struct {
		name  string
		rules Rules
		ok    bool
	}{
		{"an empty list", Rules{Connects: []Endpoint{}}, false},
		{"an empty list beside names", Rules{Roots: rules.Roots, Names: rules.Names, Connects: []Endpoint{}}, false},
		{"no list", rules, true},
	} {
		try.Rules = c.rules
		if out, code := run(t, try); (code == 0) != c.ok || !c.ok && !strings.Contains(out, "Connection refused") {
			t.Errorf("%s: exit %d\n%s", c.name, code, out)
		}
	}
}

// TestKernelAListenerThatTakesNobodyHoldsNobodyElse: a supervisor that waited with the tool would be killed here.
func TestKernelAListenerThatTakesNobodyHoldsNobodyElse(t *testing.T) {
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			at := takesNone(t)
			dir, rules := workspace(t, uid)
			rules.Connects = loopback(at)
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", fmt.Sprintf(`exec timeout -s KILL 60 "$SELF" fullqueue %d`, at)}, Env: []string{roleEnv + "=act"}})
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}

// takesNone listens at a port that is returned, and accepts no connection.
func takesNone(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return name.(*unix.SockaddrInet4).Port
}

func TestFilterOfConnects(t *testing.T) {
	type call struct {
		name     string
		amd, arm uint32
		args     []uint64
		want     uint32 // with endpoints
		none     uint32 // without
	}
	calls := []call{
		{"connect", 42, 203, nil, retNotify, retAllow},
		{"socket, TCP", 41, 198, []uint64{2, 1, 0}, retNotify, retAllow},
		{"socket, TCP over IPv6, with flags and high bits", 41, 198, []uint64{1<<40 | 10, 1<<40 | 0x80801, 6}, retNotify, retAllow},
		{"socket, UDP", 41, 198, []uint64{2, 2, 0}, retAllow, retAllow},
		{"socket, UNIX", 41, 198, []uint64{1, 1, 0}, retNotify, retAllow},
		{"listen", 50, 201, nil, retNotify, retAllow},
		{"accept4", 288, 242, nil, retAllow, retAllow},
		{"setsockopt, IP_OPTIONS", 54, 208, []uint64{0, 0, 4}, retErrno | errnoPerm, retAllow},
		{"setsockopt, IP_OPTIONS with high bits", 54, 208, []uint64{0, 1 << 40, 1<<40 | 4}, retErrno | errnoPerm, retAllow},
		{"setsockopt, SO_BINDTODEVICE", 54, 208, []uint64{0, 1, 25}, retErrno | errnoPerm, retAllow},
		{"setsockopt, SO_BINDTOIFINDEX with high bits", 54, 208, []uint64{0, 1<<40 | 1, 1<<40 | 62}, retErrno | errnoPerm, retAllow},
		{"setsockopt, TCP_FASTOPEN_CONNECT", 54, 208, []uint64{0, 6, 30}, retErrno | errnoNot, retAllow},
		{"setsockopt, SO_SNDTIMEO", 54, 208, []uint64{0, 1, 21}, retErrno, retAllow},
		{"setsockopt, SO_SNDTIMEO_NEW", 54, 208, []uint64{0, 1, 67}, retErrno, retAllow},
		{"setsockopt, SO_LINGER", 54, 208, []uint64{0, 1, 13}, retErrno, retAllow},
		{"setsockopt, SO_KEEPALIVE", 54, 208, []uint64{0, 1, 9}, retAllow, retAllow},
		{"setsockopt, the name of one level at another", 54, 208, []uint64{0, 6, 4}, retAllow, retAllow},
		{"prctl that would hide the memory", 157, 167, []uint64{4, 0}, retErrno, retErrno},
		{"write", 1, 64, nil, retAllow, retAllow},
	}
	for arch, audit := range map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64} {
		for _, names := range []bool{false, true} {
			for _, connects := range []bool{false, true} {
				r := Rules{}
				if names {
					r.Names = protected.Patterns()
				}
				if connects {
					r.Connects = []Endpoint{}
				}
				p, err := FilterOf(arch, &r)
				if err != nil {
					t.Fatal(err)
				}
				mkdirat := map[string]uint32{"amd64": 258, "arm64": 34}[arch]
				if got := evaluate(t, p, audit, mkdirat); (got == retNotify) != names {
					t.Errorf("%s, names %v: mkdirat gets %#x", arch, names, got)
				}
				for _, c := range calls {
					nr, want := c.amd, c.none
					if arch == "arm64" {
						nr = c.arm
					}
					if connects {
						want = c.want
					}
					if got := evaluate(t, p, audit, nr, c.args...); got != want {
						t.Errorf("%s, names %v, endpoints %v, %s: %#x, want %#x", arch, names, connects, c.name, got, want)
					}
				}
			}
		}
	}
	if _, err := FilterOf("mips", &Rules{}); err == nil {
		t.Error("an architecture without a table")
	}
}

func TestEndpointsThatCannotBeEncoded(t *testing.T) {
	many := make([]Endpoint, MaxConnects+1)
	for i := range many {
		many[i] = Endpoint{[4]byte{127, 0, 0, 1}, 1}
	}
	for name, list := range map[string][]Endpoint{
		"another network": {{[4]byte{10, 0, 0, 1}, 80}},
		"any address":     {{Port: 80}},
		"port 0":          {{Addr: [4]byte{127, 0, 0, 1}}},
		"too many":        many,
	} {
		if _, err := (&Rules{Connects: list}).Encode(); err == nil {
			t.Error(name)
		}
	}
	b, err := (&Rules{Names: protected.Patterns(), Connects: many[1:]}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(b); err != nil {
		t.Error(err)
	}
	for _, cut := range [][]byte{b[:len(b)-1], b[:len(b)-6], append(append([]byte{}, b...), 0)} {
		put32(cut[offSize:], uint32(len(cut)))
		if Check(cut) == nil {
			t.Errorf("%d of %d bytes are whole", len(cut), len(b))
		}
		put32(b[offSize:], uint32(len(b)))
	}
}
