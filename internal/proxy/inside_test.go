package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// insideWorld is a world whose tool has one server, at every address and port of its loopback but 9.
func insideWorld(t *testing.T, cfg Config, server string, allow ...string) *world {
	cfg.Hostname = "build-7"
	cfg.Inside = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Port() == 9 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, "tcp", server)
	}
	return newWorld(t, cfg, allow...)
}

// TestAServerInsideGetsWhatTheClientSays: no rule, secret or name is held against it, whatever speaks there, and Decide is not asked.
func TestAServerInsideGetsWhatTheClientSays(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host, r.Header) }))
	defer s.Close()
	w := insideWorld(t, Config{Network: policy.Network{
		Credentials: []policy.Credential{{Name: "T", Secret: testSecret, Hosts: []string{"127.0.0.1"}, Place: policy.PlaceBearer}},
		Requests:    []policy.RequestRule{{Host: "127.0.0.0/8", Methods: []string{"GET"}}},
		Decide: func(_ context.Context, r policy.Request) policy.Verdict {
			t.Error("asked about", r.Host)
			return policy.Verdict{}
		},
	}}, s.Listener.Addr().String(), "127.0.0.1:443")
	c, _ := w.connect("127.0.0.1:8443")
	secure := tls.Client(c, &tls.Config{ServerName: "other.example", InsecureSkipVerify: true})
	fmt.Fprintf(secure, "PUT / HTTP/1.1\r\nHost: evil.example\r\nX-Secret: %s\r\nConnection: close\r\n\r\n", w.g.Placeholders()["T"])
	answer, err := io.ReadAll(secure)
	if err != nil || !strings.Contains(string(answer), "evil.example") || strings.Contains(string(answer), testSecret) {
		t.Errorf("%v %q", err, answer)
	}
	if cert := secure.ConnectionState().PeerCertificates; len(cert) == 0 || !cert[0].Equal(s.Certificate()) {
		t.Error("the TLS was ended")
	}
	c.Close()
	for _, e := range w.ended() {
		if e.Rule != ruleInside || e.Address != "127.0.0.1:8443" || !e.Allowed {
			t.Errorf("%+v", e)
		}
	}
}

// TestARequestToAServerInside goes there by its absolute form, and a port without a server is named as what it is.
func TestARequestToAServerInside(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) }))
	defer s.Close()
	w := insideWorld(t, Config{}, s.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1:8000", "localhost", "build-7:8000", "[::1]:8000"} {
		if status, text := w.ask("POST http://" + host + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"); status != 200 || text != host {
			t.Errorf("%d %q", status, text)
		}
	}
	if status, text := w.ask("GET http://build-7:9/ HTTP/1.1\r\nHost: x\r\n\r\n"); status != 502 || !strings.Contains(text, "build-7:9 is the sandbox's own loopback, and the connection failed inside: connection refused") {
		t.Errorf("%d %q", status, text)
	}
	if status, text := w.ask("GET http://build-8:9/ HTTP/1.1\r\nHost: x\r\n\r\n"); status != 403 {
		t.Errorf("%d %q", status, text)
	}
	if c, got := w.dialSOCKS(named("0x7f.1", 9)); len(got) != 12 || got[3] != replyNoConnection {
		t.Errorf("%v %v", c, got)
	}
	if w.dials() != 0 {
		t.Error("something outside was dialled")
	}
}

// TestTheProxyIsNotReachedThroughItself under any name.
func TestTheProxyIsNotReachedThroughItself(t *testing.T) {
	w := insideWorld(t, Config{}, "127.0.0.1:1")
	for _, at := range []string{w.http, w.socks} {
		_, port, _ := net.SplitHostPort(at)
		for _, host := range []string{"127.0.0.1", "localhost", "0", "build-7"} {
			if status, text := w.ask("CONNECT " + host + ":" + port + " HTTP/1.1\r\nHost: x\r\n\r\n"); status != 403 && status != 502 || host != "localhost" && host != "build-7" && !strings.Contains(text, "this proxy itself") {
				t.Errorf("%s: %d %q", host, status, text)
			}
		}
	}
}

// TestAServerInsideIsTheHarnesssOnceRulesNameIt: the tool's connection ends, and one to another port goes on.
func TestAServerInsideIsTheHarnesssOnceRulesNameIt(t *testing.T) {
	l := listen(t)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go io.Copy(c, c)
		}
	}()
	w := insideWorld(t, Config{}, l.Addr().String())
	named, _ := w.connect("127.0.0.1:8000")
	other, r := w.connect("127.0.0.1:8001")
	rules, err := hostrules.Compile([]string{"127.0.0.1:8000"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.g.SetRules(rules)
	if _, err := named.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	io.WriteString(other, "hi\n")
	if line, err := r.ReadString('\n'); line != "hi\n" {
		t.Error(line, err)
	}
}
