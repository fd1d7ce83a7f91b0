package proxy

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestAnAuthorityOfThePolicyIsTrustedOutsideAndInside(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "hello") }))
	t.Cleanup(s.Close)
	signed := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	for _, c := range []struct {
		name        string
		credentials []policy.Credential
		authorities string
		status      int
	}{
		{"where TLS is terminated the harness trusts it", bearer(), signed, 200},
		{"without it the harness does not", bearer(), "", 502},
		{"in a tunnel the tool trusts it", nil, signed, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &secureWorld{world: newWorld(t, Config{Network: policy.Network{Credentials: c.credentials, Authorities: c.authorities}}, "example.com"), trust: x509.NewCertPool()}
			w.put("example.com", 443, s.Listener.Addr().String())
			if !w.trust.AppendCertsFromPEM(w.g.Bundle()) {
				t.Fatal("the bundle is empty")
			}
			client := w.inside()
			defer client.CloseIdleConnections()
			res, err := client.Get("https://example.com/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
		})
	}
	if _, err := New(Config{Network: policy.Network{Authorities: "/etc/ssl/corp.pem"}}); err == nil {
		t.Error("the name of a file is taken for authorities")
	}
}
