package supervisor

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelOwnPorts: the tool's processes meet at ports of the loopback network, and reach no server of the host's there.
func TestKernelOwnPorts(t *testing.T) {
	for user, uid := range users(t) {
		for _, act := range []string{"ownports", "hostservers"} {
			t.Run(act+" "+user, func(t *testing.T) {
				dir, rules := workspace(t, uid)
				rules.Connects, rules.MemFile = []Endpoint{}, true
				local, every := serverAt(t, "127.0.0.1:0"), serverAsUser(t, uid, "0.0.0.0:0")
				script := fmt.Sprintf(`"$SELF" %s %d %d`, act, local.port(), every.port())
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoCalls: true, Argv: []string{"bash", "-ec", script}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
				for _, s := range []*server{local, every} {
					if s.end(); s.accepted.Load() != 0 {
						t.Errorf("%s was connected to %d times", s.Addr(), s.accepted.Load())
					}
				}
			})
		}
	}
}

// serverAsUser is a server of the tool's own user, who could share its port by SO_REUSEPORT.
func serverAsUser(t *testing.T, uid uint32, addr string) *server {
	t.Helper()
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			if uid != self {
				unix.Fchown(int(fd), int(uid), -1) // a socket's user is its inode's (sock_i_uid)
			}
		})
	}}
	l, err := c.Listen(context.Background(), "tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l)
}

// TestKernelAPortIsTakenFromNobody: while the tool serves at a port again and again, the host wants it, too, at every address and by sockets that
// can share it. What the tool connects to is never the host's.
func TestKernelAPortIsTakenFromNobody(t *testing.T) {
	kerneltest.Long(t)
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			free := serverAt(t, "127.0.0.1:0")
			free.end()
			var stop atomic.Bool
			done := make(chan struct{})
			heard := make([]atomic.Int64, 2)
			for i := range heard {
				go func() {
					for !stop.Load() {
						heard[i].Add(int64(wants(free.port(), i)))
					}
					done <- struct{}{}
				}()
			}
			dir, rules := workspace(t, uid)
			rules.Connects, rules.MemFile = []Endpoint{}, true
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoCalls: true, Argv: []string{"bash", "-ec", fmt.Sprintf(`"$SELF" takesover %d`, free.port())}, Env: []string{roleEnv + "=act"}})
			stop.Store(true)
			<-done
			<-done
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
			if n := heard[0].Load() + heard[1].Load(); n != 0 {
				t.Errorf("the host's server was connected to %d times", n)
			}
		})
	}
}

// wants tries to serve at a port for a moment, and returns how many connections came.
func wants(port, how int) (heard int) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, how)
	if unix.Bind(fd, &unix.SockaddrInet4{Port: port}) != nil || unix.Listen(fd, 8) != nil {
		return 0
	}
	for range 50 {
		if c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); err == nil {
			unix.Close(c)
			heard++
		}
	}
	return heard
}
