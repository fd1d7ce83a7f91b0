package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
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
