package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// An ownList knows the addresses of the host's interfaces, not older than a second.
type ownList struct {
	mu    sync.Mutex
	read  time.Time
	addrs map[netip.Addr]struct{}
}

// has reports whether an address is the host's. When the interfaces cannot be
// read, every address is.
func (o *ownList) has(a netip.Addr) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.addrs == nil || time.Since(o.read) > time.Second {
		list, err := net.InterfaceAddrs()
		if err != nil {
			return true
		}
		o.addrs, o.read = map[netip.Addr]struct{}{}, time.Now()
		for _, n := range list {
			if p, err := netip.ParsePrefix(n.String()); err == nil {
				o.addrs[p.Addr().Unmap().WithZone("")] = struct{}{}
			}
		}
	}
	_, own := o.addrs[a.Unmap()]
	return own
}
