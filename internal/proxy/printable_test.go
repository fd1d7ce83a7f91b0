package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// speaks returns the first character of a text that a terminal obeys or that is not seen.
func speaks(s string) string {
	if !utf8.ValidString(s) {
		return "no UTF-8"
	}
	for _, c := range s {
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector) {
			return string(c)
		}
	}
	return ""
}

// spoken looks at every text of a value.
func spoken(v any) string {
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		if f := r.Field(i); f.Kind() == reflect.String && speaks(f.String()) != "" {
			return r.Type().Field(i).Name + ": " + f.String()
		}
	}
	return ""
}

// TestEveryTextOfAnEventIsPrintable, whichever field it is in and whoever notes it.
func TestEveryTextOfAnEventIsPrintable(t *testing.T) {
	const text = "a\x1b[2J\r\nb\u009b\u202e\xff"
	var told []policy.Connection
	g, err := New(Config{Network: policy.Network{Observe: func(e policy.Connection) { told = append(told, e) }}})
	if err != nil {
		t.Fatal(err)
	}
	var e policy.Connection
	for r, i := reflect.ValueOf(&e).Elem(), 0; i < r.NumField(); i++ {
		if r.Field(i).Kind() == reflect.String {
			r.Field(i).SetString(text)
		}
	}
	g.Deny(e)
	g.finish(e, nil)
	g.finish(e, errors.New(text))
	g.finish(e, &Refusal{Host: text, Rule: text, Why: text})
	g.finish(policy.Connection{Method: "PROPFIND"}, nil)
	g.Close()
	s := g.Summary()
	if len(told) != 5 || s.Failed != 1 || s.Denied != 2 {
		t.Fatalf("%d told, %+v", len(told), s)
	}
	for _, e := range append(told, append([]policy.Connection{s.LastFailed}, firsts(s.Violations)...)...) {
		if bad := spoken(e); bad != "" {
			t.Errorf("%q", bad)
		}
	}
	if told[0].Method != "" || told[3].Method != "PROPFIND" || told[4].Again != 1 {
		t.Errorf("methods %q and %q", told[0].Method, told[3].Method)
	}
}

// TestAServersCertificateSaysNothingToATerminal: the error of a name that does not match
// has the names as the certificate has them.
func TestAServersCertificateSaysNothingToATerminal(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"\x1b]0;OWNED\a\x1b[2J\r\nfake line"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "good.com"}}}}, "good.com")
	w.put("good.com", 443, l.Addr().String())
	raw, _ := w.connect("good.com:443")
	conn := tls.Client(raw, &tls.Config{ServerName: "good.com", InsecureSkipVerify: true})
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: good.com\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	events := w.ended()
	if len(events) == 0 || !strings.Contains(events[0].Err, "OWNED") || spoken(events[0]) != "" {
		t.Errorf("%+v", events)
	}
	if last := w.g.Summary().LastFailed; last.Err == "" || spoken(last) != "" {
		t.Errorf("%+v", last)
	}
}

// FuzzEvents has a tool and a server say whatever they like, and looks at everything
// that is told of it: to Observe, to Decide, in the summary.
func FuzzEvents(f *testing.F) {
	for _, tool := range []string{
		"GET http://good.com/\x1b[2J HTTP/1.1\r\nHost: good.com\r\n\r\n", "A\u009b2J http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n",
		"GET http://good.com/%1b%5b HTTP/1.1\r\nHost: \u202e\r\n\r\n", "CONNECT good.com\x9b:80 HTTP/1.1\r\n\r\n", "CONNECT good.com:80 HTTP/1.1\r\n\r\nGET /\u009b HTTP/1.1\r\nHost: \u009b\r\n\r\n",
		"\x05\x01\x00\x05\x01\x00\x03\x08g\x1bod.com\x00\x50", "\x05\x01\x00\x05\x01\x00\x03\x08good.com\x00\x50GET / HTTP/1.1\r\nHost: e\x1b\r\n\r\n",
		"CONNECT good.com:443 HTTP/1.1\r\n\r\n" + string(records(helloTo("\x1bgood.com"), 1<<14)), "PUT http://other.com/\u2028 HTTP/1.1\r\nHost: other.com\r\n\r\n",
	} {
		f.Add([]byte(tool), []byte("HTTP/1.1 2\x1b0 \u009b\r\nX: \x1b\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, tool, server []byte) {
		var mu sync.Mutex
		var asked []policy.Request
		w := newWorld(t, Config{
			Network: policy.Network{
				Requests: []policy.RequestRule{{Host: "good.com:80", Methods: []string{"GET"}}},
				Decide: func(_ context.Context, r policy.Request) policy.Verdict {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, r)
					return policy.Verdict{Reason: "no \x1b"}
				},
			},
		}, "good.com")
		l := listen(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write(server)
				c.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		for _, port := range []uint16{80, 443} {
			w.put("good.com", port, l.Addr().String())
		}
		at := w.http
		if bytes.HasPrefix(tool, []byte{5}) {
			at = w.socks
		}
		c, err := net.Dial("tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(tool)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
		events := w.ended()
		s := w.g.Summary()
		for _, e := range append(events, append([]policy.Connection{s.LastFailed}, firsts(s.Violations)...)...) {
			if bad := spoken(e); bad != "" {
				t.Fatalf("%q", bad)
			}
		}
		mu.Lock() // a question may outlive the connection that it was asked for
		defer mu.Unlock()
		for _, r := range asked {
			if bad := spoken(r); bad != "" {
				t.Fatalf("Decide: %q", bad)
			}
		}
	})
}
