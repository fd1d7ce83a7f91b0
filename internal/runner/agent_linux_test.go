package runner

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestKernelANetworkEndsWhoseAgentWaitsForASocket: a tool has sent it along, and its peer behind it, where the kernel lets clients of the agent's.
func TestKernelANetworkEndsWhoseAgentWaitsForASocket(t *testing.T) {
	of, err := NewNetworks(&policy.Network{SSHAgent: true})
	if err != nil {
		t.Fatal(err)
	}
	n, err := of.New(compile.NewNetConfig(policy.Network{SSHAgent: true}), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := net.Listen("unix", filepath.Join(t.TempDir(), "outside"))
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "inside"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	waits, peer, err := fixture.Lingering()
	err = errors.Join(err, unix.Connect(client, &unix.SockaddrUnix{Name: l.Addr().String()}))
	for i, fd := range []int{waits, peer} { // before any of it is read
		err = errors.Join(err, unix.Sendmsg(client, make([]byte, 4-3*i), unix.UnixRights(fd), nil, 0), unix.Close(fd))
	}
	unread := func() int {
		n, failed := unix.IoctlGetInt(client, unix.TIOCOUTQ)
		err = errors.Join(err, failed)
		return n
	}
	sent := unread()
	n.serveListener(l, "ssh-agent", func(l net.Listener) error { return n.serveAgent(l, "ssh-agent", outside.Addr().String(), agent.SSH) })
	for err == nil && unread() == sent {
	}
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan bool)
	go func() {
		n.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("Close does not return")
	}
	if s := n.Summary(); len(s.Notes) > 0 {
		t.Error(s.Notes)
	}
}
