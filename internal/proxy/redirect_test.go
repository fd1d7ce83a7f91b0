package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestARedirectElsewhereCarriesNoSecretAndNoPlaceholder(t *testing.T) {
	w := newSecureWorld(t, Config{
		Network: policy.Network{
			Credentials: []policy.Credential{{Name: "TOKEN", Secret: testSecret, Hosts: []string{"example.com"}, Place: "query", Field: "key"}},
			Requests:    []policy.RequestRule{{Host: "api.example.com"}},
		},
	}, func(rw http.ResponseWriter, r *http.Request) {
		if r.Host != "example.com" {
			t.Errorf("%s was asked for %s", r.Host, r.URL)
		}
		http.Redirect(rw, r, "https://api.example.com/?key="+url.QueryEscape(r.URL.Query().Get("key")), http.StatusFound)
	})
	c := w.inside()
	c.CheckRedirect = nil
	res, body := w.do(c, "GET", "https://example.com/?key="+w.placeholder, func(r *http.Request) { r.Header.Del("Authorization") })
	if res.StatusCode != 403 || !strings.Contains(body, "credential TOKEN") || !strings.Contains(body, "api.example.com") {
		t.Errorf("%s %q", res.Status, body)
	}
	c.CloseIdleConnections()
	w.ended()
	if s := w.g.Summary(); len(s.Violations) != 1 || s.Violations[0].Rule != "credential TOKEN" {
		t.Errorf("violations %+v", s.Violations)
	}
}

// TestARedirectTakesNoSecretAlong to another scheme, port or host, when a client
// follows it with all that it has sent before.
func TestARedirectTakesNoSecretAlong(t *testing.T) {
	for to, refused := range map[string]bool{
		"http://example.com/": true, "http://example.com:443/": true, "https://example.com:8443/": false, "https://evil.example/": false, "http://evil.example/": true, "https://EXAMPLE.com.:8443/": false,
	} {
		elsewhere := make(chan string, 10)
		var here atomic.Bool
		answer := func(rw http.ResponseWriter, r *http.Request) {
			said := r.Header.Get("Authorization") + r.URL.RawQuery
			if here.CompareAndSwap(false, true) {
				if !strings.Contains(said, testSecret) {
					t.Errorf("%s: the first request has no secret: %s", to, said)
				}
				http.Redirect(rw, r, to+"?key="+url.QueryEscape(r.Header.Get("Authorization")), http.StatusFound)
				return
			}
			elsewhere <- said
		}
		w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, answer)
		w.put("example.com", 8443, w.server.Listener.Addr().String())
		w.web("example.com", 80, answer)
		w.web("evil.example", 80, answer)
		c := w.inside()
		c.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(w.server.Certificate()) // the tool trusts the others by itself
		c.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
		token := "Bearer " + w.placeholder
		c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			r.Header.Set("Authorization", token)
			return nil
		}
		res, body := w.do(c, "GET", "https://example.com/", nil)
		if refused != (res.StatusCode == 403 && len(elsewhere) == 0) && res.StatusCode != 0 {
			t.Errorf("%s: %s %q", to, res.Status, body)
		}
		for len(elsewhere) > 0 {
			said := <-elsewhere
			for _, s := range fixture.EchoedForms(testSecret) {
				if strings.Contains(said, s) {
					t.Errorf("%s was told %q", to, said)
				}
			}
		}
		c.CloseIdleConnections()
	}
}

func TestAPlaceholderInClearTextIsRefused(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: []policy.Credential{{Name: "TOKEN", Secret: testSecret, Hosts: []string{"example.com"}, Place: "bearer"}}}}, nil)
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { t.Error("the server was asked") })
	if res, body := w.do(w.client(nil), "GET", "http://example.com/", nil); res.StatusCode != 403 || !strings.Contains(body, "over TLS alone") {
		t.Errorf("%s %q", res.Status, body)
	}
}
