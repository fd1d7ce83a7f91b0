package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

const (
	resolvedTTL      = time.Minute // after which a guarded name is looked up anew
	maxResolvedAddrs = 4096        // addresses
)

// resolvedAddrs are the addresses that guarded names have had during the run. What a
// datagram asks for in HTTP/3 is encrypted, so that its address is all there is to
// know the host by. Nothing is forgotten: who has had an address may have it again.
type resolvedAddrs struct {
	rules  hostrules.Datagrams
	lookup func(context.Context, hostrules.Host) ([]netip.Addr, error)

	mu         sync.Mutex
	addrs      map[netip.Addr]map[hostrules.Host]struct{} // the names of each
	lastLookup map[hostrules.Host]time.Time
	count      int
	full       bool // there were more than can be kept
}

// record notes what a name was looked up as, whatever for.
func (s *resolvedAddrs) record(h hostrules.Host, addrs []netip.Addr) {
	if s.rules.IsZero() || !s.rules.Guards(h) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addrs == nil {
		s.addrs, s.lastLookup = map[netip.Addr]map[hostrules.Host]struct{}{}, map[hostrules.Host]time.Time{}
	}
	for _, a := range addrs {
		a = a.Unmap()
		if _, known := s.addrs[a][h]; known {
			continue
		}
		if s.count == maxResolvedAddrs {
			s.full = true
			break
		}
		if s.addrs[a] == nil {
			s.addrs[a] = map[hostrules.Host]struct{}{}
		}
		s.addrs[a][h] = struct{}{}
		s.count++
	}
}

// judge judges an address for datagrams: by the rules, and by whether it is
// a guarded host's.
func (s *resolvedAddrs) judge(ctx context.Context, a netip.Addr, port uint16, route hostrules.Route) hostrules.Decision {
	d := s.rules.Address(a, port, route)
	if d.Outcome != hostrules.Allow || !s.rules.GuardsPort(port) {
		return d
	}
	for _, h := range s.rules.Names(port) {
		if err := s.refresh(ctx, h); err != nil {
			return hostrules.Decision{Rule: d.Rule, Why: fmt.Sprintf("the policy judges the requests to %s, whose addresses are not known: %v", h, err)}
		}
	}
	if h := s.guardedHost(a.Unmap(), port); h != "" {
		return hostrules.Decision{Rule: d.Rule, Why: fmt.Sprintf("%s is an address of %s, the requests to which the policy judges, and a datagram's it could not see", a, h)}
	}
	return d
}

// refresh looks a guarded name up, unless that has been done a short time ago. A name
// that does not exist has no addresses.
func (s *resolvedAddrs) refresh(ctx context.Context, h hostrules.Host) error {
	s.mu.Lock()
	at, known := s.lastLookup[h]
	s.mu.Unlock()
	if known && time.Since(at) < resolvedTTL {
		return nil
	}
	addrs, err := s.lookup(ctx, h)
	var dns *net.DNSError
	if err != nil && !(errors.As(err, &dns) && dns.IsNotFound) {
		return err
	}
	s.record(h, addrs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastLookup == nil {
		s.lastLookup = map[hostrules.Host]time.Time{}
	}
	s.lastLookup[h] = time.Now()
	return nil
}

// guardedHost returns the guarded host that an address has been seen as; "": none.
func (s *resolvedAddrs) guardedHost(a netip.Addr, port uint16) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.addrs[a] {
		if s.rules.Guard(h, port) != "" {
			return h.String()
		}
	}
	if s.full { // and the port is a guarded one
		return "hosts that have had more addresses than can be kept"
	}
	return ""
}
