package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// certificateOf is one with many names, which nothing needs.
func certificateOf(t *testing.T, names int) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotAfter: time.Now().Add(time.Hour)}
	for i := range names {
		c.DNSNames = append(c.DNSNames, fmt.Sprintf("%06d.subdomain.example.com", i))
	}
	b, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAServersCertificatesAreBounded where TLS is intercepted: crypto/tls keeps all of them, and 250 KiB of names took 3 MiB for each
// connection.
func TestAServersCertificatesAreBounded(t *testing.T) {
	for names, want := range map[int]int{0: 200, 1000: 200, 3000: 502} {
		w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
		chain := w.server.TLS.Certificates[0]
		chain.Certificate = append(chain.Certificate[:1:1], certificateOf(t, names))
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { io.WriteString(rw, "hello") }))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{chain}}
		s.StartTLS()
		defer s.Close()
		w.put("example.com", 443, s.Listener.Addr().String())
		code, text := get(t, w.inside(), "https://example.com/")
		if code != want || want != 200 && !strings.Contains(text, "longer than 64 KiB") {
			t.Errorf("with %d names: %d %q", names, code, text)
		}
	}
}
