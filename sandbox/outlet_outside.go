package sandbox

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// Where there is no network namespace to make them in, the proxies are at the
// machine's loopback, at ports of the run's own.

// listenOutside makes the proxies' listeners where there is no network namespace
// to make them in. Until the run begins nobody serves them, and nobody but the
// garbage collector need close them.
func (o *outlet) listenOutside() error {
	for i := range o.outside {
		l, err := net.Listen("tcp4", netip.AddrPortFrom(compile.Loopback4, 0).String())
		if err != nil {
			o.closeOutside()
			return err
		}
		o.outside[i] = l
	}
	address := func(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }
	o.http, o.socks = address(o.outside[0]), address(o.outside[1])
	return nil
}

// listenAtFreePorts is listenOutside; where a profile's word for the loopback
// means IPv6 too, it takes ports that nobody else has there.
func (o *outlet) listenAtFreePorts() (err error) {
	for range 16 {
		if err = o.listenOutside(); err != nil || !o.wiring.Direct {
			return err
		}
		if err = o.listenTwins(); err == nil {
			return nil
		}
		o.closeOutside()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return err
}

// listenTwins takes the proxies' ports of IPv6. A system without it has nobody
// there.
func (o *outlet) listenTwins() error {
	for i, l := range o.outside {
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		twin, err := net.Listen("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), port).String())
		switch {
		case err == nil:
			o.twins[i] = twin
		case !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) && !errors.Is(err, syscall.EPROTONOSUPPORT):
			return err
		}
	}
	return nil
}

func (o *outlet) closeOutside() {
	for _, l := range []net.Listener{o.outside[0], o.outside[1], o.twins[0], o.twins[1], o.agent} {
		if l != nil {
			l.Close()
		}
	}
}

// serveOutside serves the proxies that are not made inside.
func (o *outlet) serveOutside() {
	for i, p := range [...]proxy.Protocol{proxy.HTTP, proxy.SOCKS} {
		serve := func(l net.Listener) error { return o.gateway.Serve(l, p) }
		o.serveListener(o.outside[i], proxyNames[i], serve)
		if o.twins[i] != nil {
			o.serveListener(o.twins[i], proxyNames[i], serve)
		}
	}
}

var proxyNames = [...]string{"HTTP", "SOCKS5"}

// connects are the addresses that a tool without a network namespace may reach.
func (o *outlet) connects() []netip.AddrPort {
	if o.outside[0] == nil {
		return nil
	}
	return []netip.AddrPort{o.http, o.socks}
}

// ports are those of the proxies.
func (o *outlet) ports() []int {
	var list []int
	for _, at := range o.connects() {
		list = append(list, int(at.Port()))
	}
	return list
}
