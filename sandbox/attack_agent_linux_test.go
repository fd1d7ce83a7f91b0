package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"golang.org/x/sys/unix"
)

// The tool that sends sockets along with its messages to the ssh agent: one whose last close waits until its peer has read, and behind it that peer.
var _ = offer(programs, "sockets to the agent", func([]string) {
	sent := make(chan error)
	for range 16 { // of which in some the harness closes last
		go func() {
			agent := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))
			waits, peer, err := fixture.Lingering()
			err = errors.Join(err, unix.Connect(agent, &unix.SockaddrUnix{Name: os.Getenv("SSH_AUTH_SOCK")}))
			if err = errors.Join(err, unix.Sendmsg(agent, []byte{0, 0, 0, 9}, unix.UnixRights(waits), nil, 0)); err == nil {
				unix.Close(waits)
				for n := 1; n > 0; { // until it was read
					n = must(unix.IoctlGetInt(agent, unix.TIOCOUTQ))
				}
				err = unix.Sendmsg(agent, []byte{9}, unix.UnixRights(peer), nil, 0)
			}
			sent <- err
		}()
	}
	fmt.Println(<-sent)
})

// TestKernelAttackSocketsSentToAnAgent: the harness, which reads the message, would be the last to close a socket that a tool has sent along, and wait.
func TestKernelAttackSocketsSentToAnAgent(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		l := must(net.Listen("unix", filepath.Join(t.TempDir(), "agent")))
		defer l.Close()
		t.Setenv("SSH_AUTH_SOCK", l.Addr().String())
		c := hostile(t, networkSandbox(t, w, func(p *Policy) { p.Network.SSHAgent = true }), "sockets to the agent")
		var out []byte
		ended := make(chan error, 1)
		go func() {
			var err error
			out, err = c.Output()
			ended <- err
		}()
		select {
		case err := <-ended:
			sock := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
			defer unix.Close(sock)
			want := "<nil>\n"
			if unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) == nil { // Linux 6.16
				want = "operation not permitted\n"
			}
			if err != nil || string(out) != want {
				t.Errorf("%q, and not %q: %v", out, want, err)
			}
		case <-time.After(time.Minute):
			t.Fatal("Wait does not return")
		}
	})
}
