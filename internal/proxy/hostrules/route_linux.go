package hostrules

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// RouteOf asks the kernel for the route that connect(2) would take: RTM_GETROUTE of rtnetlink(7), in the network namespace and with the user of the
// calling thread, so that its rules for policy routing are obeyed. The answer is there when sendto(2) returns: nothing is waited for.
func RouteOf(a netip.Addr) Route {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsUnspecified(): // to connect(2) the host's loopback
		return RouteLocal
	case !knowsLocal():
		return routeFromInterfaces(a)
	}
	kind, err := askRoute(a)
	switch {
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return RouteRemote // no route, which the dial is told too
	case err != nil:
		return routeFromInterfaces(a)
	}
	switch kind {
	case unix.RTN_LOCAL, unix.RTN_ANYCAST:
		return RouteLocal
	case unix.RTN_BROADCAST, unix.RTN_MULTICAST:
		return RouteShared
	}
	return RouteRemote
}

// knowsLocal reports whether the kernel has routes of type local at all. gVisor's has not: each of its routes is of type unicast, that of loopback
// among them.
var knowsLocal = sync.OnceValue(func() bool {
	kind, err := askRoute(netip.IPv4Unspecified()) // local wherever there is IPv4 (ip_route_output_key_hash_rcu)
	return err == nil && kind == unix.RTN_LOCAL
})

// routeFromInterfaces is the answer where the kernel has none about routes: an address of an interface is local, and every other one that is not the
// public Internet's is unknown.
func routeFromInterfaces(a netip.Addr) Route {
	own, err := isInterfaceAddress(a)
	switch {
	case own:
		return RouteLocal
	case err != nil || !isPublic(a):
		return RouteUnknown
	}
	return RouteRemote
}

var errRouteAnswer = errors.New("the answer is not one to RTM_GETROUTE")

// askRoute returns the rtm_type of the route to an address.
func askRoute(a netip.Addr) (kind uint8, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("netlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, routeQuestion(a), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("RTM_GETROUTE: %w", err)
	}
	var answer [4096]byte
	n, from, err := unix.Recvfrom(fd, answer[:], unix.MSG_DONTWAIT)
	if err != nil {
		return 0, fmt.Errorf("RTM_GETROUTE: %w", err)
	}
	if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != 0 { // not the kernel
		return 0, errRouteAnswer
	}
	return routeAnswer(answer[:n])
}

// routeQuestion is a request of rtnetlink: a header, a struct rtmsg, and the destination as its one attribute.
func routeQuestion(a netip.Addr) []byte {
	dst := a.AsSlice()
	family := byte(unix.AF_INET)
	if a.Is6() {
		family = unix.AF_INET6
	}
	size := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(dst)
	b := binary.NativeEndian.AppendUint32(make([]byte, 0, size), uint32(size))
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_GETROUTE)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = append(b, make([]byte, 8)...) // the sequence's number and the port
	b = append(b, family, byte(a.BitLen()))
	b = append(b, make([]byte, unix.SizeofRtMsg-2)...)
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(dst)))
	b = binary.NativeEndian.AppendUint16(b, unix.RTA_DST)
	return append(b, dst...)
}

// routeAnswer reads rtm_type, or the error of an NLMSG_ERROR.
func routeAnswer(b []byte) (kind uint8, err error) {
	const body = unix.SizeofNlMsghdr
	if len(b) < body+unix.SizeofRtMsg {
		return 0, errRouteAnswer
	}
	switch binary.NativeEndian.Uint16(b[4:]) {
	case unix.RTM_NEWROUTE:
		return b[body+7], nil
	case unix.NLMSG_ERROR:
		if errno := -int32(binary.NativeEndian.Uint32(b[body:])); errno > 0 {
			return 0, fmt.Errorf("RTM_GETROUTE: %w", unix.Errno(errno))
		}
	}
	return 0, errRouteAnswer
}
