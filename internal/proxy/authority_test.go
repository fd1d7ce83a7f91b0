package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"

	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"

	"software.sslmate.com/src/go-pkcs12"
)

func testAuthority(t *testing.T, entries ...string) *authority {
	t.Helper()
	a, err := newAuthority(time.Now(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// trusts says whether a client that trusts an authority takes its leaf for a host.
func trusts(t *testing.T, a *authority, h string) error {
	t.Helper()
	c, err := a.leaf(time.Now(), hostOf(t, h))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	_, err = c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: h})
	return err
}

func TestAnAuthorityCertifiesTheHostsOfItsEntriesAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		entries  []string
		yes, not []string
	}{
		{[]string{"api.example.com"}, []string{"api.example.com"}, []string{"example.com", "evil.example", "127.0.0.1", "::1"}},
		{[]string{"*.example.com:443", "10.0.0.0/8"}, []string{"a.example.com", "10.1.2.3"}, []string{"example.org", "127.0.0.1", "::1"}},
		{[]string{"127.0.0.1:8443"}, []string{"127.0.0.1"}, []string{"127.0.0.2", "example.com"}},
		{[]string{"[::1]:443", "a.example:1-9"}, []string{"::1", "a.example"}, []string{"::2", "b.example"}},
		{[]string{"*"}, []string{"any.example", "127.0.0.1"}, nil},
	} {
		a := testAuthority(t, c.entries...)
		for _, h := range c.yes {
			if err := trusts(t, a, h); err != nil {
				t.Errorf("%q: %s: %v", c.entries, h, err)
			}
		}
		for _, h := range c.not {
			if err := trusts(t, a, h); err == nil {
				t.Errorf("%q: %s is certified too", c.entries, h)
			}
		}
	}
}

func TestALeafIsKeptAndMadeAnewInTime(t *testing.T) {
	a := testAuthority(t, "*")
	now, h := time.Now(), hostOf(t, "a.example")
	one, _ := a.leaf(now, h)
	two, _ := a.leaf(now.Add(time.Hour), h)
	three, _ := a.leaf(now.Add(leafLife-time.Hour), h)
	last, _ := a.leaf(now.Add(authorityLife-time.Hour), h)
	if one != two || two == three || last.Leaf.NotAfter.After(a.cert.NotAfter) {
		t.Error("leaves are not kept, or not made anew, or outlive their authority")
	}
	for i := range maxLeaves + 10 {
		a.leaf(now, hostOf(t, fmt.Sprintf("h%d.example", i)))
	}
	if len(a.leaves) > maxLeaves {
		t.Errorf("%d leaves are kept", len(a.leaves))
	}
}

func TestTwoSandboxesDoNotTrustEachOther(t *testing.T) {
	a, b := testAuthority(t, "*"), testAuthority(t, "*")
	c, _ := a.leaf(time.Now(), hostOf(t, "a.example"))
	pool := x509.NewCertPool()
	pool.AddCert(b.cert)
	if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "a.example"}); err == nil {
		t.Error("another sandbox's authority is trusted")
	}
	if a.key.Equal(b.key) || a.key.PublicKey.Equal(c.PrivateKey.(*ecdsa.PrivateKey).Public()) {
		t.Error("a key is used twice")
	}
}

func TestABundleHasTheSystemsRootsAndTheAuthorityAndNoKey(t *testing.T) {
	a := testAuthority(t, "a.example")
	b := bundle([]byte("# the system's\n-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----"), a)
	if !bytes.Contains(b, []byte("MA==\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\n")) || bytes.Contains(b, []byte("KEY")) {
		t.Errorf("%s", b)
	}
	s, err := store(b)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := pkcs12.DecodeTrustStore(s, clientenv.StorePassword)
	if err != nil || len(certs) != 1 || !certs[0].Equal(a.cert) {
		t.Errorf("%d certificates, %v", len(certs), err)
	}
}

// digits is an authority's key as fmt would print it.
func digits(t *testing.T, a *authority) string {
	t.Helper()
	b, err := a.key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(b).String()
}

func TestAnAuthorityDoesNotPrintItsKey(t *testing.T) {
	a := testAuthority(t, "a.example")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, a); strings.Contains(s, digits(t, a)) || len(s) > 100 {
			t.Errorf("%s prints %.200s", verb, s)
		}
	}
}

func TestOpenSSLHoldsTheConstraint(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("needs openssl:", err)
	}
	dir := t.TempDir()
	a := testAuthority(t, "a.example", "10.0.0.1")
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, bundle(nil, a), 0o600); err != nil {
		t.Fatal(err)
	}
	for h, want := range map[string]bool{"a.example": true, "10.0.0.1": true, "b.example": false, "10.0.0.2": false} {
		c, err := a.leaf(time.Now(), hostOf(t, h))
		if err != nil {
			t.Fatal(err)
		}
		leaf := filepath.Join(dir, h+".pem")
		if err := os.WriteFile(leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("openssl", "verify", "-x509_strict", "-no-CApath", "-CAfile", ca, leaf).CombinedOutput()
		if (err == nil) != want {
			t.Errorf("%s: %v: %s", h, err, out)
		}
	}
}

// FuzzConstraint has what Compile accepts be certified: an entry of any spelling
// constrains the authority to what it allows.
func FuzzConstraint(f *testing.F) {
	for _, e := range []string{"example.com", "*.Example.com.:443", "*", "*:80", "10.0.0.0/8", "10.1.2.3:22", "[::1]:80", "::1", "2001:db8::/32", "[2001:db8::]:1-2", "bücher.example", "a.example:8000-8100", "[::1]", "[*]", "[example.com]:80", "10.0.0.0/8:443", "[2001:db8:1::/48]:443", "[2001:db8:1::/48]"} {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		if _, err := hostrules.Compile([]string{entry}, nil); err != nil {
			return
		}
		names, nets, every := hostrules.Names([]string{entry})
		if !every && len(names)+len(nets) != 1 || every && !strings.HasPrefix(entry, "*") {
			t.Errorf("%q is constrained to %q, %v, every host: %v", entry, names, nets, every)
		}
	})
}
