package plan

import (
	"fmt"
	"net/netip"
)

// MaxSlots is how many descriptors a plan can pass up to the harness. A slot is
// one's number, by which the harness asks for it.
const MaxSlots = 32

// These actions make a descriptor inside the sandbox, which init passes up to the
// harness and keeps no copy of. Those of a network come after Loopback, when init
// is in the network namespace, and before its capabilities are dropped.
type (
	// Listen makes a listener inside: at Addr for "tcp4", "tcp6" and "udp4", at Path
	// of the new root, with the permissions Mode, for "unix". Port 0 lets the kernel
	// choose. A path lies in a directory that is the sandbox's own: the name that
	// bind(2) makes would stay behind on the host.
	Listen struct {
		Network string
		Addr    netip.AddrPort
		Path    string
		Mode    uint32
		Slot    int
	}
	// Tun makes a TUN device inside, without the header before each packet
	// (IFF_NO_PI), with Addr as its address and the default route of IPv4 through
	// it, and passes up the descriptor with which the harness reads and writes the
	// packets. With Addr6 the same for IPv6, where the kernel has it: where not, or
	// where the administrator has disabled it, there is none, and no failure. MTU 0
	// leaves the kernel's, which is 1500. It comes before Pivot, because the device
	// file is the host's.
	Tun struct {
		Name  string
		Addr  netip.Prefix
		Addr6 netip.Prefix
		MTU   int
		Slot  int
	}
	// ProbeTun makes a TUN device and records whether that went well.
	ProbeTun struct{}
	// Dialer passes up a socket by which the harness asks init for unconnected TCP
	// sockets of the sandbox's network, to connect to servers inside.
	Dialer struct{ Slot int }
)

func (a Listen) String() string {
	if a.Network == "unix" {
		return fmt.Sprintf("listen at %s inside, for the harness", a.Path)
	}
	return fmt.Sprintf("listen at %s %s inside, for the harness", a.Network, a.Addr)
}

func (a Tun) String() string {
	s := fmt.Sprintf("make the device %s with %s and the default route, for the harness", a.Name, a.Addr)
	if a.Addr6.IsValid() {
		s += fmt.Sprintf("; and with %s if there is IPv6", a.Addr6)
	}
	return s
}

func (ProbeTun) String() string { return "try a TUN device" }
func (Dialer) String() string   { return "make sockets for the harness when it asks" }

func (Listen) action()   {}
func (Tun) action()      {}
func (ProbeTun) action() {}
func (Dialer) action()   {}
