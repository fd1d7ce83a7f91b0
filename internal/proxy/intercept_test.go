package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A secureWorld is a world with a TLS server at example.com and below it, whose
// certificate the proxy trusts and the tool does not.
type secureWorld struct {
	*world
	server      *httptest.Server
	placeholder string
	trust       *x509.CertPool // what the tool trusts
}

func newSecureWorld(t *testing.T, cfg Config, h http.HandlerFunc, allow ...string) *secureWorld {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	if cfg.Roots == nil {
		cfg.Roots = x509.NewCertPool()
		cfg.Roots.AddCert(s.Certificate())
	}
	w := &secureWorld{world: newWorld(t, cfg, append(allow, "example.com", "*.example.com", "evil.example")...), server: s, trust: x509.NewCertPool()}
	for _, name := range []string{"example.com", "api.example.com", "evil.example"} {
		w.put(name, 443, s.Listener.Addr().String())
	}
	w.placeholder = w.g.Placeholders()["TOKEN"]
	w.trust.AppendCertsFromPEM(w.g.Bundle())
	return w
}

// bearer is a credential for example.com.
func bearer() []policy.Credential {
	return []policy.Credential{{Name: "TOKEN", Secret: testSecret, Hosts: []string{"example.com:443"}, Place: "bearer"}}
}

// inside is a tool's client: it trusts the bundle alone, and would rather speak HTTP/2.
func (w *secureWorld) inside() *http.Client {
	c := w.client(nil)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: w.trust}
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	return c
}

// do sends a request with the bearer's placeholder.
func (w *secureWorld) do(c *http.Client, method, u string, change func(*http.Request)) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequest(method, u, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.placeholder)
	if change != nil {
		change(r)
	}
	res, err := c.Do(r)
	if err != nil {
		return &http.Response{}, err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res, string(b)
}

// tls opens a tunnel and shakes hands in it.
func (w *secureWorld) tls(target, name string, protos ...string) (*tls.Conn, error) {
	conn, _ := w.connect(target)
	c := tls.Client(conn, &tls.Config{ServerName: name, RootCAs: w.trust, NextProtos: protos})
	return c, c.Handshake()
}

func TestACredentialCrossesTheBoundary(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%v %s %s", r.Header.Get("Authorization") == "Bearer "+testSecret, r.Proto, r.Header.Get("Authorization"))
	})
	c := w.inside()
	res, body := w.do(c, "GET", "https://example.com/a?b=c", nil)
	if res.Proto != "HTTP/1.1" || body != "true HTTP/1.1 Bearer "+w.placeholder {
		t.Errorf("%s %q", res.Proto, body)
	}
	c.CloseIdleConnections()
	said := fmt.Sprintf("%+v %+v %+v", w.ended(), w.g.Summary(), w.g)
	has(t, said, "Protocol:https", "Path:/a", "Address:"+public.String())
	for _, s := range append(fixture.EchoedForms(testSecret), digits(t, w.g.compiled.authority)) {
		if strings.Contains(said, s) {
			t.Errorf("%q is in %s", s, said)
		}
	}
}

func TestAHostWithoutACredentialOrARuleIsTunnelledUntouched(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {})
	conn, _ := w.connect("api.example.com:443")
	pool := x509.NewCertPool()
	pool.AddCert(w.server.Certificate())
	c := tls.Client(conn, &tls.Config{ServerName: "api.example.com", RootCAs: pool})
	if err := c.Handshake(); err != nil || !c.ConnectionState().PeerCertificates[0].Equal(w.server.Certificate()) {
		t.Errorf("the tool does not meet the real server: %v", err)
	}
	if g := newWorld(t, Config{}, "example.com").g; g.Bundle() != nil || len(g.Placeholders()) != 0 {
		t.Error("a proxy that terminates nothing has an authority")
	}
}

func TestAnUnverifiedServerIsA502ThatSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		cfg  Config
		want string
	}{
		"a certificate for another name":        {"evil.example", Config{Network: policy.Network{Credentials: []policy.Credential{{Name: "TOKEN", Secret: testSecret, Hosts: []string{"evil.example"}, Place: "bearer"}}}}, "valid for example.com"},
		"a certificate of an unknown authority": {"example.com", Config{Network: policy.Network{Credentials: bearer()}, Roots: x509.NewCertPool()}, "unknown authority. The policy's owner has to add that to Network.Authorities"},
	} {
		w := newSecureWorld(t, c.cfg, func(rw http.ResponseWriter, r *http.Request) { t.Errorf("%s: the server was asked", name) })
		res, body := w.do(w.inside(), "GET", "https://"+c.host+"/", nil)
		if res.StatusCode != 502 || !strings.Contains(body, c.want) || !strings.Contains(body, c.host) {
			t.Errorf("%s: %s %q", name, res.Status, body)
		}
	}
}

func TestAnExpiredServerIsRefused(t *testing.T) {
	a := testAuthority(t, "*")
	old, err := a.issue(time.Now().Add(-2*leafLife), hostOf(t, "example.com"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*old}})
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	cfg := Config{Network: policy.Network{Credentials: bearer()}, Roots: x509.NewCertPool()}
	cfg.Roots.AddCert(a.cert)
	w := newSecureWorld(t, cfg, nil)
	w.put("example.com", 443, l.Addr().String())
	if res, body := w.do(w.inside(), "GET", "https://example.com/", nil); res.StatusCode != 502 || !strings.Contains(body, "expired") {
		t.Errorf("%s %q", res.Status, body)
	}
}

func TestEventsStreamThroughTerminatedTLS(t *testing.T) {
	next := make(chan bool)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			io.WriteString(rw, "data: "+testSecret+"\n\n")
			rw.(http.Flusher).Flush()
			<-next
		}
	})
	r, _ := http.NewRequest("GET", "https://example.com/", nil)
	res, err := w.inside().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(res.Body)
	for range 3 {
		if lines.Scan(); lines.Text() != "data: "+w.placeholder {
			t.Errorf("%q", lines.Text())
		}
		lines.Scan()
		next <- true
	}
	res.Body.Close()
}

func TestALargeBodyPassesUnchangedBothWays(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		http.NewResponseController(rw).EnableFullDuplex()
		io.Copy(rw, r.Body)
	})
	text := strings.Repeat("0123456789abcde\n", 1<<19) // 8 MiB
	res, err := w.inside().Post("https://example.com/", "text/plain", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	if string(b) != text || err != nil {
		t.Errorf("%d bytes of %d, %v", len(b), len(text), err)
	}
}

func TestAWebSocketPassesAndCarriesTheCredential(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		ok := r.Header.Get("Authorization") == "Bearer "+testSecret && r.Header.Get("Sec-WebSocket-Extensions") == ""
		c, b, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(b, "HTTP/1.1 101 %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Ok: %v\r\nX-Echo: %s\r\n\r\n%s", testSecret, ok, testSecret, framedText("hello"))
		b.Flush()
		line, _ := b.ReadString('\n')
		io.WriteString(c, framedText("you said "+line))
		b.ReadString('\n')
		io.WriteString(c, framedText("and it is "+testSecret))
	})
	c, err := w.tls("example.com:443", "example.com", "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer %s\r\n\r\n", w.placeholder)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 || res.Header.Get("X-Ok") != "true" || res.Header.Get("X-Echo") != w.placeholder || strings.Contains(res.Status, "s3cr3t") {
		t.Fatal(res, err)
	}
	b := make([]byte, len(framedText("hello")))
	io.ReadFull(r, b)
	io.WriteString(c, "ping\n")
	line, err := r.ReadString('\n')
	if string(b) != framedText("hello") || line != framedText("you said ping\n") {
		t.Errorf("%q, %q, %v", b, line, err)
	}
	io.WriteString(c, "more\n")
	if rest, _ := io.ReadAll(r); strings.Contains(string(rest), "s3cr3t/+") {
		t.Errorf("the secret came back: %q", rest)
	}
}

// TestAWebSocketIsNotSwitchedToCompression: a secret could not be seen in it.
func TestAWebSocketIsNotSwitchedToCompression(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		c, b, _ := http.NewResponseController(rw).Hijack()
		defer c.Close()
		fmt.Fprint(b, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
		b.Flush()
		io.Copy(io.Discard, b)
	})
	c, err := w.tls("example.com:443", "example.com", "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 502 {
		t.Error(res, err)
	}
}

func TestATunnelThatWasCapturedIsTerminatedToo(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, r.Header.Get("Authorization") == "Bearer "+testSecret)
	})
	tool, gate := net.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- w.g.CarryTCP(context.Background(), gate, Target{Host: hostOf(t, "example.com"), Port: 443, Protocol: "tcp"})
	}()
	c := tls.Client(tool, &tls.Config{ServerName: "example.com", RootCAs: w.trust})
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n", w.placeholder)
	if code, body := answerOf(bufio.NewReader(c)); code != 200 || body != "true" {
		t.Errorf("%d %q", code, body)
	}
	c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAClientThatDoesNotTrustTheBundleIsToldOfInTheEvent(t *testing.T) {
	told := make(chan policy.Connection, 1)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Observe: func(e policy.Connection) { told <- e }}}, nil)
	conn, _ := w.connect("example.com:443")
	if tls.Client(conn, &tls.Config{ServerName: "example.com", RootCAs: x509.NewCertPool()}).Handshake() == nil {
		t.Fatal("it is trusted")
	}
	conn.Close()
	if e := <-told; !strings.Contains(e.Err, "trust bundle") {
		t.Errorf("%+v", e)
	}
}

func TestATerminatedConnectionLeavesNothingOpen(t *testing.T) {
	const rounds = 10
	told := make(chan policy.Connection, 4*rounds)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Observe: func(e policy.Connection) { told <- e }}}, func(rw http.ResponseWriter, r *http.Request) {})
	for range rounds {
		c := w.inside()
		if code, body := get(t, c, "https://example.com/"); code != 200 {
			t.Fatal(code, body)
		}
		c.CloseIdleConnections()
		for e := <-told; e.Protocol != "connect"; e = <-told {
		}
		conn, _ := w.connect("example.com:443")
		if tls.Client(conn, &tls.Config{ServerName: "example.com", RootCAs: x509.NewCertPool()}).Handshake() == nil {
			t.Fatal("it is trusted")
		}
		conn.Close()
		<-told
	}
	w.g.tracker.mu.Lock()
	defer w.g.tracker.mu.Unlock()
	if len(w.g.open) != 2 || w.g.clients != 0 { // the two listeners
		t.Errorf("%d are open, %d clients", len(w.g.open), w.g.clients)
	}
}

// TestACompiledOfAnotherConfigIsRefused: without an authority the secrets would have no TLS to go
// into. One of the same Config is taken.
func TestACompiledOfAnotherConfigIsRefused(t *testing.T) {
	for _, n := range []policy.Network{{Credentials: bearer()}, {Requests: []policy.RequestRule{{Host: "example.com"}}}} {
		c := Config{Network: n}
		other, err := Compile(Config{})
		if err != nil {
			t.Fatal(err)
		}
		own, err := Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		for compiled, want := range map[*Compiled]bool{other: false, own: true} {
			c.Compiled = compiled
			p, err := New(c)
			if (err == nil) != want {
				t.Errorf("taken: %v", err)
			}
			if err == nil {
				p.Close()
			}
		}
	}
}
