package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestWhereTLSIsEndedHTTP1IsSpokenAlone: no frame of HTTP/2 is read from a client or a server.
// A client's SETTINGS_HEADER_TABLE_SIZE while net/http's server wrote a header ended the process
// (concurrent map access); a server's 13 bytes of WINDOW_UPDATE had Close wait for ever.
func TestWhereTLSIsEndedHTTP1IsSpokenAlone(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) })
	for _, offer := range [][]string{{"h2", "http/1.1"}, {"http/1.1", "h2"}, {"http/1.1"}, nil} {
		c, err := w.tls("example.com:443", "example.com", offer...)
		if p := c.ConnectionState().NegotiatedProtocol; err != nil || p != "http/1.1" && p != "" {
			t.Errorf("%q: %q, %v", offer, p, err)
		}
		c.Close()
	}
	if code, body := get(t, w.inside(), "https://example.com/"); code != 200 || body != "HTTP/1.1" {
		t.Errorf("a client and a server that would rather speak HTTP/2: %d %q", code, body)
	}
	if _, err := w.tls("example.com:443", "example.com", "h2"); err == nil {
		t.Error("a client that speaks HTTP/2 alone is served")
	}
	w.heard("does not speak HTTP/1.1")
	c, err := w.tls("example.com:443", "example.com")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, preface+"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00")
	if b, _ := io.ReadAll(c); strings.HasPrefix(string(b), "\x00") || strings.Contains(string(b), "200 OK") {
		t.Errorf("the preface of HTTP/2 is answered %q", b)
	}
}

// TestAServerOfHTTP2AloneIsToldOf, whether it refuses at once (as OpenSSL's servers do) or goes on
// with its own protocol (as Go's do).
func TestAServerOfHTTP2AloneIsToldOf(t *testing.T) {
	const settings = "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"
	for protocol, want := range map[string]string{"grpc-exp": "does not speak HTTP/1.1", "h2": ""} {
		w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
		l := tls.NewListener(listen(t), &tls.Config{Certificates: w.server.TLS.Certificates, NextProtos: []string{protocol}})
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					c.Read(make([]byte, 1))
					io.WriteString(c, settings)
				}()
			}
		}()
		w.put("example.com", 443, l.Addr().String())
		if code, body := get(t, w.inside(), "https://example.com/"); code != 502 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", protocol, code, body)
		}
	}
}

// TestHTTP2PassesWhereTLSIsNotEnded: gRPC reaches a host without a credential or rule as ever.
func TestHTTP2PassesWhereTLSIsNotEnded(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "Grpc-Status")
		fmt.Fprint(rw, r.Proto)
		rw.Header().Set("Grpc-Status", "0")
	})
	c := w.client(nil)
	tr := c.Transport.(*http.Transport)
	tr.TLSClientConfig, tr.ForceAttemptHTTP2 = &tls.Config{InsecureSkipVerify: true}, true
	res, err := c.Get("https://api.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "HTTP/2.0" || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%q, trailer %v", b, res.Trailer)
	}
}
