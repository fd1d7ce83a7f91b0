//go:build !linux

package hostrules

import "net/netip"

// RouteOf looks among the addresses of the interfaces, which is where these systems
// have those that they deliver to themselves.
func RouteOf(a netip.Addr) Route {
	a = a.Unmap().WithZone("")
	if a.IsUnspecified() {
		return RouteLocal
	}
	own, err := isInterfaceAddress(a)
	switch {
	case own:
		return RouteLocal
	case err != nil:
		return RouteUnknown
	}
	return RouteRemote
}
