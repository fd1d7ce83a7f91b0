package runner

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Ports lists who listens in the session, in order.
func (n *Session) Ports() ([]policy.Port, error) {
	if err := n.err(nil); err != nil {
		return nil, err
	}
	sockets, err := n.sockets(portTables...)
	if err == nil {
		return n.portsOf(sockets)
	}
	if over := n.over(nil); over != nil {
		return nil, over
	}
	return nil, fmt.Errorf("sandbox: the session's sockets: %w", err)
}

var portTables = []string{"tcp", "tcp6", "udp", "udp6"}

// portsOf finds who has sockets.
func (n *Session) portsOf(sockets []socket) ([]policy.Port, error) {
	list, err := n.Processes()
	if err != nil {
		return nil, err
	}
	wanted := map[uint64]bool{}
	for _, s := range sockets {
		wanted[s.inode] = true
	}
	found := holders(list, wanted)
	var ports []policy.Port
	for _, s := range sockets {
		p, has := found[s.inode]
		if !has && (!n.sandbox.Plan.Namespaces.Net || n.net.listensAt(s.Port.Port)) {
			continue // another's of this machine, or the sandbox's own
		}
		s.Process = p
		ports = append(ports, s.Port)
	}
	slices.SortFunc(ports, func(a, b policy.Port) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), a.Address.Compare(b.Address), a.Process.PID-b.Process.PID)
	})
	return ports, nil
}

// listensAt reports whether the network has a listener of its own inside at a port.
func (n *Network) listensAt(port uint16) bool {
	const dns = 53 // of a capture
	w := n.wiring
	return port == w.HTTP || port == w.SOCKS || slices.Contains(w.Loopback, port) || w.Captures && port == dns
}

// portsEvery is how often WaitPorts and the observer look.
const portsEvery = 100 * time.Millisecond

// samePorts reports whether nothing has changed from one list to another.
func samePorts(a, b []policy.Port) bool {
	return slices.EqualFunc(a, b, func(a, b policy.Port) bool {
		return a.Port == b.Port && a.Protocol == b.Protocol && a.Address == b.Address && a.Process.PID == b.Process.PID
	})
}

// WaitPorts returns the list when it differs from one that is known.
func (n *Session) WaitPorts(ctx context.Context, known []policy.Port) ([]policy.Port, error) {
	tick := time.NewTicker(portsEvery)
	defer tick.Stop()
	for changes := (socketChanges{session: n}); ; {
		if changes.may() {
			now, err := n.Ports()
			if err != nil || !samePorts(now, known) {
				return now, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("sandbox: the session's ports: %w", ctx.Err())
		case <-n.ended:
		case <-tick.C:
		}
	}
}

// Forward listens at the harness's loopback for a port of the session's, one of Network.Listen, until the session ends.
func (n *Session) Forward(port uint16) (netip.AddrPort, error) {
	if err := n.sandbox.mayDial(port); err != nil {
		return netip.AddrPort{}, err
	}
	if over := n.err(nil); over != nil {
		return netip.AddrPort{}, over
	}
	n.forwards.mu.Lock()
	defer n.forwards.mu.Unlock()
	if at, has := n.forwards.all[port]; has {
		return at, nil
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("sandbox: forward port %d: %w", port, err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	n.net.serveListener(l, fmt.Sprintf("port %d inside", port), func(net.Listener) error { return n.net.forward(l, port) })
	if over := n.net.ctx.Err(); over != nil {
		<-n.ended
		return netip.AddrPort{}, n.err(nil)
	}
	if n.forwards.all == nil {
		n.forwards.all = map[uint16]netip.AddrPort{}
	}
	n.forwards.all[port] = at
	return at, nil
}
