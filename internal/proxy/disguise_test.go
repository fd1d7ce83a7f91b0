package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A disguised connection writes something before, or into, the first bytes of TLS.
type disguised struct {
	net.Conn
	change func([]byte) []byte
}

func (c *disguised) Write(b []byte) (int, error) {
	if c.change == nil {
		return c.Conn.Write(b)
	}
	first := c.change(b)
	c.change = nil
	if _, err := c.Conn.Write(first); err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestDisguisedHelloIsStillHeldAgainstItsTarget: the server of this test takes each
// of the disguises for TLS.
func TestDisguisedHelloIsStillHeldAgainstItsTarget(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"plainly":             func(b []byte) []byte { return b },
		"behind a warning":    func(b []byte) []byte { return append([]byte{0x15, 3, 1, 0, 2, 1, 90}, b...) },
		"in an odd version":   func(b []byte) []byte { b = append([]byte(nil), b...); b[1] = 0; return b },
		"both":                func(b []byte) []byte { b = append([]byte{0x15, 1, 1, 0, 2, 1, 90}, b...); b[8] = 7; return b },
		"behind two warnings": func(b []byte) []byte { return append([]byte{0x15, 3, 1, 0, 2, 1, 90, 0x15, 3, 3, 0, 2, 1, 90}, b...) },
	} {
		w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "hello") })
		shake := func(conn net.Conn, server string) (*tls.Conn, error) {
			c := tls.Client(&disguised{conn, change}, &tls.Config{ServerName: server, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
			return c, c.Handshake()
		}
		straight, err := net.Dial("tcp", w.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shake(straight, "api.example.com"); err != nil {
			t.Errorf("%s: the server does not take it: %v", name, err)
		}
		straight.Close()
		conn, _ := w.connect("evil.example:443")
		if _, err := shake(conn, "api.example.com"); err == nil {
			t.Errorf("%s: another server name than CONNECT's is served", name)
		}
		for _, said := range []string{"example.com", ""} {
			conn, _ = w.connect("example.com:443")
			if c, err := shake(conn, said); err == nil && c.ConnectionState().PeerCertificates[0].Equal(w.server.Certificate()) {
				t.Errorf("%s, server name %q: the TLS of a host with a credential is not terminated", name, said)
			}
		}
	}
}

// TestInterceptedTLSIsHeldAgainstItsTarget: a client that names another host in it is not answered.
func TestInterceptedTLSIsHeldAgainstItsTarget(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(http.ResponseWriter, *http.Request) {})
	for _, name := range []string{"example.com", "evil.example"} {
		conn, _ := w.connect("example.com:443")
		err := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if (err == nil) != (name == "example.com") {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
	for _, e := range w.ended() {
		if !e.Allowed && e.Host == "example.com" && strings.Contains(e.Reason, "TLS server name is evil.example") {
			return
		}
	}
	t.Errorf("no denial is told: %+v", w.events)
}

// TestPrefaceOfHTTP2IsNoDisguiseForHTTP1: a server without HTTP/2 may answer the
// preface's first line as a request and read the next one.
func TestPrefaceOfHTTP2IsNoDisguiseForHTTP1(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 80)
	const second = "GET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"
	for _, first := range []string{"PRI * HTTP/2.0\r\n\r\n", "PRI * HTTP/2.0\r\nHost: good.com\r\n\r\n", "\r\nPRI * HTTP/2.0\r\n\r\n"} {
		c, r := w.connect("good.com:80")
		io.WriteString(c, first+second)
		c.(*net.TCPConn).CloseWrite()
		if b, _ := io.ReadAll(r); bytes.Contains(b, []byte("other.example")) {
			t.Errorf("%q: the server was sent the request behind it", first)
		}
	}
}

// FuzzSniff has a client begin with anything, in pieces: what was read is what is
// passed on, and what a TLS server would read is seen as that.
func FuzzSniff(f *testing.F) {
	f.Add(clientHello(f, "good.com"), uint16(3))
	f.Add(append([]byte{0x15, 1, 1, 0, 2, 1, 90}, clientHello(f, "good.com")...), uint16(9))
	f.Add([]byte(preface+"GET / HTTP/1.1\r\n\r\n"), uint16(20))
	f.Add([]byte("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		n := min(int(cut), len(b))
		a := &begun{rest: b[n:]}
		kind, seen, err := sniff(a, b[:n:n])
		if err != nil {
			return
		}
		if !bytes.Equal(append(bytes.Clone(seen), a.rest...), b) {
			t.Fatalf("%q was sent and %q seen, %q left", b, seen, a.rest)
		}
		if kind == sniffedOther && len(b) > 6 && n == len(b) {
			tls.Server(&helloConn{in: bytes.NewReader(b)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				t.Errorf("%q is a hello for %q, and was seen as bytes", b, h.ServerName)
				return nil, io.EOF
			}}).Handshake()
		}
	})
}

// A begun connection has sent something and then ends.
type begun struct {
	net.Conn
	rest []byte
}

func (c *begun) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (*begun) SetReadDeadline(time.Time) error { return nil }

// TestOddSeparatorsAreNoDisguiseForARequest: Python's http.server splits a line at whatever str.split does, in Latin-1. It takes the host
// from the header, which was not looked at.
func TestOddSeparatorsAreNoDisguiseForARequest(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 80)
	for _, by := range []string{" ", "\t", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\f \xa0"} {
		for _, line := range []string{"GET" + by + "/" + by + "HTTP/1.1", "GET /" + by + "HTTP/1.1", by + "GET / HTTP/1.1", "GET" + by + "/", by + "GET /" + by} {
			c, r := w.connect("good.com:80")
			io.WriteString(c, line+"\r\nHost: other.example\r\n\r\n")
			c.(*net.TCPConn).CloseWrite()
			if b, _ := io.ReadAll(r); bytes.Contains(b, []byte("Host: other.example")) {
				t.Errorf("%q: the server was sent it", line)
			}
			c.Close()
		}
	}
	for _, other := range []string{"SSH-2.0-OpenSSH_9.2\r\n", "\x1f\x8b\x08\x00", "0\x0c\x02\x01\x01", "0032git-upload-pack /a\x00", "\x85\xa0\x01", "EHLO a\xa0b\r\n"} {
		c, r := w.connect("good.com:80")
		io.WriteString(c, other)
		if b, err := io.ReadAll(io.LimitReader(r, int64(len(other)))); string(b) != other {
			t.Errorf("%q is no request, and %q comes back: %v", other, b, err)
		}
		c.Close()
	}
}

// TestARequestInDisguiseIsNotPassed: what some server reads as a request, whole or at its end, and that names another host than the tunnel's.
func TestARequestInDisguiseIsNotPassed(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 80)
	const host = "\r\nHost: evil.example\r\n\r\n"
	for _, said := range []string{
		"GET http://evil.example/secret HTTP/1.0", "GET http://evil.example/secret", "GET http:evil.example", "HEAD http://evil.example HTTP/1.1\r", "\r\n GET http://evil.example/ HTTP/1.0",
		"GET x" + host, "GET *" + host, "GET http:evil.example" + host, "GET evil.example:80" + host, "GET ?x" + host, "GET #" + host, "GET \x01" + host, "GET \xe4" + host, "GET\tx" + host, " GET x" + host, "GET x " + host,
		"POST x" + host, "PUT /x" + host, "DELETE *" + host, "OPTIONS *" + host, "PATCH x" + host, "HEAD x" + host, "GET /\x01 HTTP/1.0" + host, "GET /a\x00b HTTP/1.1" + host, "GET /\x7f HTTP/1.1" + host, "GET /\x1b HTTP/1.1" + host,
		"POST \x02/ HTTP/1.1" + host, "GET / HTTP/1.1\x00" + host, "GET /\x08 http/1.1" + host, " \r\nGET / HTTP/1.1" + host, "\t\n \n\r\nGET x" + host, "GET x\rHost: evil.example\r\r", "\rGET x\rHost: evil.example\r\r",
		"PRI * HTTP/2.0" + host, "PRI * HTTP/2.0\r\n\r\nSM\r\nHost: evil.example", "PRI * HTTP/2.0\r\n\r\nGET http://evil.example/ HTTP/1.0",
	} {
		for _, half := range []bool{true, false} {
			if !half && !strings.HasSuffix(said, "\n") {
				continue
			}
			c, r := w.connect("good.com:80")
			io.WriteString(c, said)
			if half {
				c.(*net.TCPConn).CloseWrite()
			}
			c.SetDeadline(time.Now().Add(time.Minute))
			if b, err := io.ReadAll(r); bytes.Contains(b, []byte("evil.example")) && !bytes.HasPrefix(b, []byte("HTTP/1.1 4")) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q: the server was sent it: %q, %v", said, b, err)
			}
			c.Close()
		}
	}
}

// TestOtherProtocolsPassInATunnel, whoever speaks first, whole and at their end.
func TestOtherProtocolsPassInATunnel(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 80)
	for _, said := range []string{
		"PING\r\n", "SET key http://x\r\n", "INFO", "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "get key\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x00\x00\x00\x08\x04\xd2\x16\x2f", "AMQP\x00\x00\x09\x01", "EHLO me\r\n", "a1 LOGIN x y\r\n", "NICK x\r\nUSER x 0 * :x\r\n",
		"0032git-upload-pack /a.git\x00host=good.com\x00", "example.com\r\n", "hello", "hello world", "STOMP\naccept-version:1.2\n\n\x00", "CONNECT {\"verbose\":false}\r\nPING\r\n", "0\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00", "A\x09\x00\x00\x01\x00\x00\x00", preface,
		"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00", "BitTorrent\x13", "/path\r\n", "\x16", "GE",
	} {
		c, r := w.connect("good.com:80")
		io.WriteString(c, said)
		c.(*net.TCPConn).CloseWrite()
		c.SetDeadline(time.Now().Add(time.Minute))
		if b, err := io.ReadAll(r); string(b) != said || err != nil {
			t.Errorf("%q comes back as %q: %v", said, b, err)
		}
		c.Close()
	}
}

// TestWhatBeginsLikeARequestIsRefusedInWords: to the client and as an event; net/http's bare answer looks like the server's.
func TestWhatBeginsLikeARequestIsRefusedInWords(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 6379)
	for _, said := range []string{"GET key\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/9.9\r\nHost: good.com\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		c, r := w.connect("good.com:6379")
		io.WriteString(c, said)
		status, text := answerOf(r)
		if status < 400 || !strings.Contains(text, "Refused by the sandbox's network policy") || !strings.Contains(text, "begins like a request of HTTP/1.1 and is none") || !strings.Contains(text, "good.com") {
			t.Errorf("%q: %d %q", said, status, text)
		}
		c.Close()
	}
	if status, text := w.ask("GET\r\n\r\n"); status != 400 || !strings.Contains(text, "begins like a request") {
		t.Errorf("%d %q", status, text)
	}
	events := w.ended()
	for _, e := range events {
		if e.Allowed || !strings.Contains(e.Reason, "begins like a request") {
			t.Errorf("%+v", e)
		}
	}
	if len(events) != 5 {
		t.Errorf("%d events", len(events))
	}
}
