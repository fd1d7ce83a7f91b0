package capture

import (
	"net/netip"
	"sync"
)

// mostNames bounds the table of names: it is what a tool can make the harness
// remember by asking.
const mostNames = 4096

// A names table gives each name an address that stands for it inside, for as long
// as the run lasts. An address is never given to a second name: a tool that keeps
// one keeps what it was given for.
type names struct {
	around netip.Prefix // where the addresses are from
	own    netip.Addr   // the device's, which the tool's kernel keeps for itself
	most   int

	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	next   netip.Addr
}

// newNames takes the device's address and the network around it.
func newNames(device netip.Prefix, most int) *names {
	around := device.Masked()
	return &names{
		around: around, own: device.Addr(), most: most,
		byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{},
		next: around.Addr().Next(), // the network's own address is none for a host
	}
}

// address returns the address that stands for a name, a new one if need be. It
// has none when the table, or the network, is full.
func (n *names) address(name string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, known := n.byName[name]; known {
		return a, true
	}
	if n.next == n.own {
		n.next = n.next.Next()
	}
	// The last address of a network is its broadcast address.
	if len(n.byName) >= n.most || !n.around.Contains(n.next.Next()) {
		return netip.Addr{}, false
	}
	a := n.next
	n.byName[name], n.byAddr[a] = a, name
	n.next = a.Next()
	return a, true
}

// host returns what a connection to an address is a connection to: the name that
// it stands for, or itself. An address of the table's network that stands for no
// name is nothing at all.
func (n *names) host(a netip.Addr) (string, bool) {
	if !n.around.Contains(a) {
		return a.String(), true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	name, known := n.byAddr[a]
	return name, known
}
