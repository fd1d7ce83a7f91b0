package runner

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ownLoopback has the addresses to which supervisors bind servers where there is no network namespace (package supervisor, ports_linux.go).
var ownLoopback = netip.MustParsePrefix("127.128.0.0/9")

// forIPv6 is the bit of such an address's second byte that says that it stands for ::1.
const forIPv6 = 1 << 6

// A directDialer connects to servers of a sandbox that has no network namespace: doc.go has why each of its looks is needed.
type directDialer struct {
	processes func() []policy.Process // of the sandbox
}

// dial connects to the server that has 127.0.0.1 or ::1, as it sees that.
func (d directDialer) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	server, err := d.find(func(s socket) bool {
		at := s.at()
		return s.state == stateListen && at.Port() == to.Port() && ownLoopback.Contains(at.Addr()) && (at.Addr().As4()[1]&forIPv6 == 0) == to.Addr().Is4()
	})
	if err != nil {
		return fail(err)
	}
	if server == nil {
		return fail(refused)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp4", server.at().String())
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err
		}
		return fail(err)
	}
	own := c.LocalAddr().(*net.TCPAddr).AddrPort()
	peer, err := d.find(func(s socket) bool { return s.proves(*server, own) })
	if err == nil && peer == nil {
		err = refused
	}
	if err != nil {
		c.Close()
		return fail(err)
	}
	return c, nil
}

// proves reports whether a socket, if it is the sandbox's, shows that a client at an address is connected to the server, or was accepted by it.
func (s socket) proves(server socket, client netip.AddrPort) bool {
	listens := s.state == stateListen && s.inode == server.inode
	accepted := s.state != stateListen && s.inode != 0 && netip.AddrPortFrom(s.remote.Addr().Unmap(), s.remote.Port()) == client
	return s.at() == server.at() && (listens || accepted)
}

// mostLooks is how often a process is looked for that has a socket: one that passes from a process to its child can be missed.
const mostLooks = 3

// find returns one of the machine's TCP sockets that is wanted and that a process of the sandbox has; nil: there is none.
func (d directDialer) find(wanted func(socket) bool) (*socket, error) {
	all := func(table []byte, protocol string) []socket { return socketsOf(table, protocol, "") }
	for range mostLooks {
		list, err := readSockets("/proc/thread-self/net/", all, "tcp", "tcp6")
		if err != nil {
			return nil, err
		}
		inodes := map[uint64]bool{}
		for _, s := range list {
			if wanted(s) {
				inodes[s.inode] = true
			}
		}
		if len(inodes) == 0 {
			return nil, nil
		}
		held := holders(d.processes(), inodes)
		for _, s := range list {
			if _, has := held[s.inode]; has && wanted(s) {
				return &s, nil
			}
		}
	}
	return nil, nil
}

// meets reports whether the supervisor makes the tools' servers, at addresses in ownLoopback, since there is no network namespace.
func (s *Sandbox) meets() bool {
	return slices.ContainsFunc(s.Plan.Steps, func(step plan.Step) bool {
		load, is := step.Do.(plan.LoadSupervisor)
		return is && load.Network
	})
}
