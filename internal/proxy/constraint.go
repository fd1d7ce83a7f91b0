package proxy

import (
	"crypto/x509"
	"net"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// constrain puts into an authority's certificate that it may certify only the hosts which entries match
// (RFC 5280, 4.2.1.10). OpenSSL, GnuTLS, NSS, Go, Java and webpki hold it, and a client that does not is as far as it
// would be with none. Where only names, or only addresses, are permitted, the other kind is excluded as a whole: a
// kind that is not spoken of would be free. Of the entry "*" nothing can be said.
func constrain(t *x509.Certificate, entries []string) {
	names, nets, every := hostrules.Names(entries)
	if every {
		return
	}
	t.PermittedDNSDomainsCritical = true
	t.PermittedDNSDomains, t.PermittedIPRanges = names, nets
	if len(nets) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	if len(names) == 0 {
		t.PermittedDNSDomains = []string{"invalid"} // a name that cannot exist (RFC 6761)
	}
}
