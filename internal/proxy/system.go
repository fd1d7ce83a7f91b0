package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// lookupAbsolute asks the host's resolver for a name as it stands: with a dot at
// its end no search domain makes another name of it. Neither the C library's resolver nor
// Go's finds every name of /etc/hosts with that dot, so that is looked at first.
func lookupAbsolute(ctx context.Context, name string) ([]netip.Addr, error) {
	if addrs, err := hostsFile.LookupNetIP(ctx, "ip", name); err == nil {
		return addrs, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// hostsFile is Go's resolver without a name server that it could ask. What else it
// would try, the names of the search domains, ends there.
var hostsFile = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("only files are looked at")
}}

func dialTCP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	d.SetMultipathTCP(false)
	return d.DialContext(ctx, "tcp", to.String())
}

// dialUDP connects a socket: the kernel takes datagrams from that peer alone.
func dialUDP(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Control: disableBroadcast}
	return d.DialContext(ctx, "udp", to.String())
}
