package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// How long certificates hold. The authority's outlives every run that is not a
// service; a leaf is made anew when half of its time is over. Both begin a little
// before they are made, for a guest whose clock is behind.
const (
	authorityLife = 30 * 24 * time.Hour
	leafLife      = 24 * time.Hour
	clockSlack    = 10 * time.Minute
)

// maxLeaves bounds the leaves that are kept: a wildcard has any number of names.
const maxLeaves = 1024

// An authority is a sandbox's own certificate authority. Its key is made with it,
// stays in this process's memory, and is never encoded; only the certificate
// leaves, in the trust bundle. What it may certify is constrained in the
// certificate itself to the hosts whose TLS is intercepted.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[hostrules.Host]*tls.Certificate
}

func newAuthority(now time.Time, entries []string) (*authority, error) {
	t := &x509.Certificate{
		Subject:        pkix.Name{Organization: []string{"Holdfast"}, CommonName: "Holdfast sandbox " + rand.Text()[:8]},
		NotAfter:       now.Add(authorityLife),
		IsCA:           true,
		MaxPathLenZero: true,
		KeyUsage:       x509.KeyUsageCertSign,
	}
	constrain(t, entries)
	cert, key, err := (&authority{}).certify(now, t)
	if err != nil {
		return nil, fmt.Errorf("sandbox's authority: %w", err)
	}
	return &authority{cert: cert, key: key, leaves: map[hostrules.Host]*tls.Certificate{}}, nil
}

// certify makes a key, and its certificate of a template, signed by the authority; the
// authority's own signs itself.
func (a *authority) certify(now time.Time, t *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	t.NotBefore, t.BasicConstraintsValid = now.Add(-clockSlack), true
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// Format keeps the key out of whatever prints an authority.
func (a *authority) Format(f fmt.State, _ rune) { fmt.Fprint(f, "sandbox's authority") }

// leaf returns a certificate for a host, of the cache or new.
func (a *authority) leaf(now time.Time, h hostrules.Host) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[h]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	c, err := a.issue(now, h)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", h, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[h] = c
	return c, nil
}

// issue makes a leaf. It has no common name: some clients would hold that against
// the authority's constraints, as a name, even where it is an address.
func (a *authority) issue(now time.Time, h hostrules.Host) (*tls.Certificate, error) {
	t := &x509.Certificate{
		Subject:  pkix.Name{Organization: []string{"Holdfast sandbox"}},
		NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if end := a.cert.NotAfter; end.Before(t.NotAfter) {
		t.NotAfter = end
	}
	if addr, ok := h.Addr(); ok {
		t.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		t.DNSNames = []string{h.String()}
	}
	leaf, key, err := a.certify(now, t)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

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
