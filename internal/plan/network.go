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
)

func (a Listen) String() string {
	if a.Network == "unix" {
		return fmt.Sprintf("listen at %s inside, for the harness", a.Path)
	}
	return fmt.Sprintf("listen at %s %s inside, for the harness", a.Network, a.Addr)
}

func (Listen) action() {}
