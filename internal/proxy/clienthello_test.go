package proxy

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// record is a record of TLS of some kind.
func record(kind byte, body string) []byte {
	return append([]byte{kind, 3, 3}, sized(2, []byte(body))...)
}

func helloTo(name string, extensions ...[]byte) []byte {
	return helloOf(append([][]byte{extension(serverName(0, name))}, extensions...)...)
}

var (
	changeCipher = record(0x14, "\x01")
	keyExchange  = records(append([]byte{16}, sized(3, make([]byte, 33))...), 1<<14)
)

// TestWhatBeginsAsTLSBeginsWithAClientHello, whole, or none of it is passed: some servers look past what is before it.
func TestWhatBeginsAsTLSBeginsWithAClientHello(t *testing.T) {
	hello := records(helloTo("good.com"), 1<<14)
	for name, sent := range map[string][]byte{
		"application data": slices.Concat(record(0x17, "data"), hello),
		"a cipher change":  slices.Concat(changeCipher, hello),
		"another message":  slices.Concat(keyExchange, hello),
		"half a hello":     hello[:40],
		"half a header":    hello[:3],
	} {
		w := newWorld(t, Config{}, "good.com")
		w.echo("good.com", 443)
		conn, r := w.connect("good.com:443")
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
		if got, _ := io.ReadAll(r); len(got) > 0 {
			t.Errorf("%s: %d bytes of %d passed", name, len(got), len(sent))
		}
		conn.Close()
		if events := w.ended(); len(events) != 1 || events[0].Allowed || events[0].Reason == "" {
			t.Errorf("%s: %+v", name, events)
		}
	}
}

// TestATunnelCarriesEveryHandshake of real peers, with a second ClientHello or without.
func TestATunnelCarriesEveryHandshake(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP384}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	l, err := tls.Listen("tcp4", "127.0.0.1:0", s.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.put("good.com", 443, l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	sessions := tls.NewLRUClientSessionCache(8)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than a buffer
	for _, c := range []struct {
		name    string
		version uint16
		curves  []tls.CurveID
		again   bool
	}{
		{"TLS 1.3", tls.VersionTLS13, []tls.CurveID{tls.CurveP384}, false},
		{"TLS 1.3, resumed", tls.VersionTLS13, []tls.CurveID{tls.CurveP384}, false},
		{"TLS 1.3 with a HelloRetryRequest, resumed", tls.VersionTLS13, []tls.CurveID{tls.X25519, tls.CurveP384}, true},
		{"TLS 1.2", tls.VersionTLS12, nil, false},
		{"TLS 1.2, resumed", tls.VersionTLS12, nil, false},
		{"TLS 1.2 with a certificate of the client's", tls.VersionTLS12, nil, false},
		{"TLS 1.3 with a certificate of the client's", tls.VersionTLS13, []tls.CurveID{tls.X25519, tls.CurveP384}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, _ := w.connect("good.com:443")
			config := &tls.Config{ServerName: "good.com", InsecureSkipVerify: true, MinVersion: c.version, MaxVersion: c.version, CurvePreferences: c.curves, ClientSessionCache: sessions}
			if strings.HasSuffix(c.name, "client's") {
				config.Certificates, config.ClientSessionCache = s.TLS.Certificates, nil
			}
			conn := tls.Client(raw, config)
			defer conn.Close()
			go conn.Write(text)
			got := make([]byte, len(text))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, text) {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			if state.HelloRetryRequest != c.again || state.DidResume != strings.HasSuffix(c.name, "resumed") {
				t.Errorf("a second hello %v, resumed %v", state.HelloRetryRequest, state.DidResume)
			}
		})
	}
}
