package runner

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// Where there is no network namespace to make them in, the proxies are at the
// machine's loopback, at ports that only this run uses.

// listenOutside makes the proxies' listeners where there is no network namespace
// to make them in. Until the run begins they are not served, and the garbage
// collector may close them.
func (n *Network) listenOutside() error {
	for i := range n.outside {
		l, err := net.Listen("tcp4", netip.AddrPortFrom(compile.Loopback4, 0).String())
		if err != nil {
			n.closeOutside()
			return err
		}
		n.outside[i] = l
	}
	address := func(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }
	n.http, n.socks = address(n.outside[0]), address(n.outside[1])
	n.connects = []netip.AddrPort{n.http, n.socks}
	return nil
}

func (n *Network) closeOutside() {
	for _, l := range []net.Listener{n.outside[0], n.outside[1], n.twins[0], n.twins[1]} {
		if l != nil {
			l.Close()
		}
	}
}

// listenAtFreePorts is listenOutside; where a profile's word for the loopback
// means IPv6 too, it takes ports that are free there.
func (n *Network) listenAtFreePorts() (err error) {
	for range 16 {
		if err = n.listenOutside(); err != nil || !n.wiring.Direct {
			return err
		}
		if err = n.listenTwins(); err == nil {
			return nil
		}
		n.closeOutside()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return err
}

// listenTwins takes the proxies' ports of IPv6. A system without it has no
// listener there.
func (n *Network) listenTwins() error {
	for i, l := range n.outside {
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		twin, err := net.Listen("tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), port).String())
		switch {
		case err == nil:
			n.twins[i] = twin
		case !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) && !errors.Is(err, syscall.EPROTONOSUPPORT):
			return err
		}
	}
	return nil
}

// serveOutside serves the proxies that are not made inside.
func (n *Network) serveOutside() {
	for i, p := range [...]proxy.Protocol{proxy.HTTP, proxy.SOCKS} {
		serve := func(l net.Listener) error { return n.gateway.Serve(l, p) }
		n.serveListener(n.outside[i], ProxyNames[i], serve)
		if n.twins[i] != nil {
			n.serveListener(n.twins[i], ProxyNames[i], serve)
		}
	}
}

// ProxyNames are what a run's proxies are called in what is served, HTTP first.
var ProxyNames = [...]string{"HTTP", "SOCKS5"}

// Ports are those of the proxies that listen at the machine's loopback.
func (n *Network) Ports() []int {
	var list []int
	for _, at := range n.connects {
		list = append(list, int(at.Port()))
	}
	return list
}
