package egress

import (
	"crypto/x509"
	"net"
	"net/netip"
	"strings"
)

// A constraint is what an authority may certify (RFC 5280, 4.2.1.10). OpenSSL,
// GnuTLS, NSS, Go, Java and webpki hold it, and a client that does not is as far as
// it would be with none.
type constraint struct {
	names []string // with what is below them
	nets  []*net.IPNet
	every bool // an entry is "*": nothing can be said
}

// constrain reads entries as [Compile] has accepted them.
func constrain(entries []string) constraint {
	var c constraint
	for _, e := range entries {
		if p, ok := entryPrefix(e); ok {
			c.nets = append(c.nets, &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
			continue
		}
		name, _, _ := strings.Cut(e, ":")
		name = strings.TrimPrefix(name, "*.")
		if h, err := ParseHost(name); err == nil && name != "*" {
			c.names = append(c.names, h.String())
		} else {
			c.every = true
		}
	}
	return c
}

// entryPrefix returns the addresses of an entry that is about addresses.
func entryPrefix(e string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(e); err == nil {
		return p, true
	}
	if i := strings.LastIndexByte(e, ':'); i >= 0 { // addresses with a port, or a range of them
		if p, err := netip.ParsePrefix(e[:i]); err == nil {
			return p, true
		}
		if h, err := ParseHost(e[:i]); err == nil && (strings.HasPrefix(e, "[") || strings.Count(e, ":") == 1) {
			return hostPrefix(h)
		}
	}
	h, err := ParseHost(e)
	if err != nil {
		return netip.Prefix{}, false
	}
	return hostPrefix(h)
}

func hostPrefix(h Host) (netip.Prefix, bool) {
	a, ok := h.Addr()
	if !ok {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

// apply puts the constraint into a certificate. Where only names, or only
// addresses, are permitted, the other kind is excluded as a whole: a kind that is
// not spoken of would be free.
func (c constraint) apply(t *x509.Certificate) {
	if c.every || len(c.names)+len(c.nets) == 0 {
		return
	}
	t.PermittedDNSDomainsCritical = true
	t.PermittedDNSDomains, t.PermittedIPRanges = c.names, c.nets
	if len(c.nets) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	if len(c.names) == 0 {
		t.PermittedDNSDomains = []string{"invalid"} // RFC 6761: nobody's
	}
}
