package proxy

import (
	"crypto/x509"
	"net"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// A constraint lists the hosts that an authority may certify (RFC 5280, 4.2.1.10). OpenSSL,
// GnuTLS, NSS, Go, Java and webpki hold it, and a client that does not is as far as
// it would be with none.
type constraint struct {
	names []string // with what is below them
	nets  []*net.IPNet
	every bool // an entry is "*": nothing can be said
}

// constrain is the constraint to the hosts that entries match.
func constrain(entries []string) (c constraint) {
	c.names, c.nets, c.every = hostrules.Names(entries)
	return c
}

// apply puts the constraint into a certificate. Where only names, or only
// addresses, are permitted, the other kind is excluded as a whole: a kind that is
// not spoken of would be free.
func (c constraint) apply(t *x509.Certificate) {
	if c.every {
		return
	}
	t.PermittedDNSDomainsCritical = true
	t.PermittedDNSDomains, t.PermittedIPRanges = c.names, c.nets
	if len(c.nets) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	if len(c.names) == 0 {
		t.PermittedDNSDomains = []string{"invalid"} // a name that cannot exist (RFC 6761)
	}
}
