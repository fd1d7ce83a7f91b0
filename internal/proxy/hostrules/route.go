package hostrules

import (
	"net"
	"net/netip"
)

// A Route says where the kernel takes what is sent to an address. It is the kernel's
// answer for that address, asked anew each time: a list of the addresses of interfaces
// lacks those of a prefix on the loopback device and of routes of type local (AnyIP,
// load balancers' forwarding rules), which end at the host's own servers as well.
type Route uint8

// The routes. The zero Route opens no address but one that an entry names alone.
const (
	RouteUnknown Route = iota // the kernel could not be asked
	RouteLocal                // to this host
	RouteShared               // to several hosts at once: broadcast, multicast
	RouteRemote               // to another host, or nowhere
)

// isInterfaceAddress reports whether an address is one of the host's interfaces.
func isInterfaceAddress(a netip.Addr) (bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, n := range list {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap().WithZone("") == a {
			return true, nil
		}
	}
	return false, nil
}
