package egress

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestFewConnectionsAtOnceSpeakHTTP2: each of them can keep a hundred goroutines of
// the harness waiting. One more works by HTTP/1.
func TestFewConnectionsAtOnceSpeakHTTP2(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, func(http.ResponseWriter, *http.Request) {})
	speaks := func() (*tls.Conn, string) {
		c, err := w.tls("example.com:443", "example.com", "h2", "http/1.1")
		if err != nil {
			t.Fatal(err)
		}
		return c, c.ConnectionState().NegotiatedProtocol
	}
	c, protocol := speaks()
	for i := range mostTwo - 1 {
		if _, p := speaks(); p != "h2" {
			t.Fatalf("connection %d speaks %q", i+2, p)
		}
	}
	if _, p := speaks(); protocol != "h2" || p != "http/1.1" {
		t.Errorf("the first speaks %q, and the one too many %q", protocol, p)
	}
	if code, _ := get(t, w.inside(true), "https://example.com/"); code != 200 {
		t.Errorf("a client that would rather speak HTTP/2: %d", code)
	}
	c.Close()
	for protocol = ""; protocol != "h2"; c.Close() { // once the gateway has noticed
		c, protocol = speaks()
	}
}

// TestARequestThatWaitsToBeAnsweredIsForgotten: net/http holds it for as long.
func TestARequestThatWaitsToBeAnsweredIsForgotten(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	host, _ := ParseHost("example.com")
	in := &inner{target: Target{Host: host, Port: 443}, scheme: "https", two: true, via: broken{}}
	r := httptest.NewRequest("GET", "https://example.com/x", nil)
	r.Header.Set("X", "y")
	rec := httptest.NewRecorder()
	w.g.serveInside(rec, r, newStrict(&tracked{g: w.g}, w.g, in), "")
	if r.Header != nil || *r.URL != (url.URL{}) || r.RequestURI != "" {
		t.Errorf("%+v", r)
	}
	if rec.Code != http.StatusBadGateway {
		t.Errorf("%d", rec.Code)
	}
}
