package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
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
	serial := newSerial()
	t := &x509.Certificate{
		SerialNumber:   serial,
		Subject:        pkix.Name{Organization: []string{"Holdfast"}, CommonName: "Holdfast sandbox " + hex.EncodeToString(serial.Bytes()[:4])},
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

// String keeps the key out of whatever prints an authority.
func (a *authority) String() string { return "sandbox's authority" }

// GoString does the same for %#v.
func (a *authority) GoString() string { return a.String() }

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
		SerialNumber: newSerial(),
		Subject:      pkix.Name{Organization: []string{"Holdfast sandbox"}},
		NotAfter:     earlierOf(now.Add(leafLife), a.cert.NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
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

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// newSerial returns a positive number of 16 bytes, the first of which is not 0.
func newSerial() *big.Int {
	var b [16]byte
	rand.Read(b[:])
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}
