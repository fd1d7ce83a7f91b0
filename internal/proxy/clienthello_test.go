package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
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
	offersEarlyData = []byte{0, earlyData, 0, 0}
	changeCipher    = record(recordCipher, "\x01")
	keyExchange     = records(append([]byte{16}, sized(3, make([]byte, 33))...), 1<<14)
)

// longHello is a ClientHello of some 80000 bytes, longer than one that is judged.
func longHello(name string) []byte {
	padding := append([]byte{0, 21}, sized(2, make([]byte, 40_000))...)
	body := [][]byte{{3, 3}, make([]byte, 32), sized(1), sized(2, make([]byte, 40_000)), sized(1, []byte{0}), sized(2, extension(serverName(0, name)), padding)}
	return append([]byte{typeHello}, sized(3, body...)...)
}

// version gives a ClientHello another legacy_version.
func version(major byte, hello []byte) []byte {
	hello[messageHeader] = major
	return hello
}

// followed are what clients send behind a ClientHello that names good.com.
var followed = []struct {
	name  string
	sent  []byte
	taken bool // all of it is passed
}{
	{"a second hello for another host", records(helloTo("evil.example"), 1<<14), false},
	{"one behind a ChangeCipherSpec", slices.Concat(changeCipher, records(helloTo("evil.example"), 1<<14)), false},
	{"one in records of a byte", slices.Concat(changeCipher, records(helloTo("evil.example"), 1)), false},
	{"one in records of five bytes", slices.Concat(changeCipher, records(helloTo("evil.example"), 5)), false},
	{"one of another version", slices.Concat(changeCipher, records(version(4, helloTo("evil.example")), 1<<14)), false},
	{"one of the highest version", slices.Concat(changeCipher, records(version(255, helloTo("evil.example")), 1<<14)), false},
	{"a long one", slices.Concat(changeCipher, records(longHello("evil.example"), 1<<14)), false},
	{"a long one, and data", slices.Concat(changeCipher, records(longHello("evil.example"), 1<<14), record(recordApplication, "data")), false},
	{"a short one behind a server's message", slices.Concat(records([]byte{0, 0, 0, 0}, 1<<14), changeCipher, records(helloTo("evil.example"), 1<<14)), false},
	{"one behind an alert", slices.Concat(record(recordAlert, "\x01\x5a"), records(helloTo("evil.example"), 1<<14)), false},
	{"one behind an empty record", slices.Concat(record(recordHandshake, ""), records(helloTo("evil.example"), 1<<14)), false},
	{"one behind another message", slices.Concat(keyExchange, records(helloTo("evil.example"), 1<<14)), false},
	{"one in another message's record", records(slices.Concat([]byte{16}, sized(3, []byte("key")), helloTo("evil.example")), 1<<14), false},
	{"a third one", slices.Concat(records(helloTo("good.com"), 1<<14), records(helloTo("evil.example"), 1<<14)), false},
	{"one behind early data", slices.Concat(records(helloTo("good.com", offersEarlyData), 1<<14), record(recordApplication, "early"), changeCipher, record(recordApplication, "data"), records(helloTo("evil.example"), 1<<14)), false},
	{"one that is no ClientHello by its length", records(append([]byte{1, 0, 0, 40, 3, 3}, bytes.Repeat([]byte{0xff}, 38)...), 1<<14), false},
	{"one that is too long", []byte{recordHandshake, 3, 3, 0x40, 0, 1, 0x7f, 0xff, 0xff}, false},
	{"what is no record", []byte("GET / HTTP/1.1\r\n\r\n"), false},
	{"a record of a size that there is not", []byte{recordApplication, 3, 3, 0xff, 0xff}, false},

	{"a second hello for the same host", slices.Concat(changeCipher, records(helloTo("good.com"), 1<<14), record(recordApplication, "finished")), true},
	{"one in pieces", slices.Concat(records(helloTo("good.com"), 3), record(recordApplication, "finished")), true},
	{"TLS 1.3 without a second hello", slices.Concat(changeCipher, record(recordApplication, "finished"), []byte("\x16 whatever follows is not looked at")), true},
	{"TLS 1.2", slices.Concat(keyExchange, changeCipher, record(recordHandshake, "\x00 a finished message, encrypted"), record(recordApplication, "data"), record(recordHandshake, "\x01\x00\x00\x10 a renegotiation")), true},
	{"TLS 1.2 resumed, with a first byte that could be a hello's", slices.Concat(changeCipher, record(recordHandshake, "\x01\x00\x00\x20\x99 a finished message, encrypted")), true},
	{"TLS 1.2 resumed, with first bytes that could be a long hello's", slices.Concat(changeCipher, record(recordHandshake, "\x01\x01\x99\x20\x99 a finished message, encrypted"), record(recordApplication, "data")), true},
	{"TLS 1.2, with first bytes that could be a hello's", slices.Concat(keyExchange, changeCipher, record(recordHandshake, "\x01\x00\x99\x20\x03 a finished message, encrypted")), true},
	{"early data", slices.Concat(records(helloTo("good.com", offersEarlyData), 1<<14), record(recordApplication, "early"), record(recordApplication, "finished")), true},
	{"a client that gives up", record(recordAlert, "\x02\x28"), true},
}

// TestEachClientHelloInClearTextIsJudged, whatever comes before it: a server that asks
// for a second one serves the host that this one names.
func TestEachClientHelloInClearTextIsJudged(t *testing.T) {
	for _, c := range followed {
		for name, each := range map[string]int{"at once": 1 << 20, "in segments of a byte": 1, "of seven": 7} {
			w := newWorld(t, Config{}, "good.com")
			w.echo("good.com", 443)
			sent := slices.Concat(records(helloTo("good.com"), 1<<14), c.sent)
			conn, r := w.connect("good.com:443")
			for part := range slices.Chunk(sent, each) {
				conn.Write(part)
			}
			conn.(*net.TCPConn).CloseWrite()
			got, _ := io.ReadAll(r)
			conn.Close()
			if c.taken != bytes.Equal(got, sent) || bytes.Contains(got, []byte("evil.example")) {
				t.Errorf("%s, %s: %d bytes of %d passed", c.name, name, len(got), len(sent))
			}
			events := w.ended()
			if len(events) != 1 || events[0].Allowed != c.taken || !c.taken && events[0].Reason == "" {
				t.Errorf("%s, %s: %+v", c.name, name, events)
			}
		}
	}
}

// TestWhatBeginsAsTLSBeginsWithAClientHello, whole, or none of it is passed: some servers look past what is before it.
func TestWhatBeginsAsTLSBeginsWithAClientHello(t *testing.T) {
	hello := records(helloTo("good.com"), 1<<14)
	for name, sent := range map[string][]byte{
		"application data": slices.Concat(record(recordApplication, "data"), hello),
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

// TestWhatIsHeldOfAClientHelloIsBounded: records that are no part of it may come in its midst, without end; and what comes byte by byte is
// not copied for each.
func TestWhatIsHeldOfAClientHelloIsBounded(t *testing.T) {
	begun := "\x16\x03\x01\x00\x04\x01\x00\x20\x00"
	for name, more := range map[string]string{
		"alerts": "\x15\x03\x01\x40\x00" + strings.Repeat("\x00", 1<<14), "empty records": strings.Repeat("\x16\x03\x01\x00\x00", 1000),
		"changes of the cipher": strings.Repeat("\x14\x03\x01\x00\x01\x01", 1000), "heartbeats": strings.Repeat("\x18\x03\x01\x00\x01\x01", 1000),
	} {
		h := &helloFilter{judge: func(*tls.ClientHelloInfo) error { return nil }}
		_, err := h.feed([]byte(begun))
		fed := 0
		for ; err == nil && fed < 4<<20; fed += len(more) {
			_, err = h.feed([]byte(more))
		}
		if !errors.Is(err, errHello) {
			t.Errorf("%s: %d bytes, %v, %d are held", name, fed, err, len(h.held))
		}
	}
	h := &helloFilter{judge: func(*tls.ClientHelloInfo) error { return nil }}
	long := append([]byte("\x16\x03\x01\x40\x00\x01\x00\x7f\x00"), make([]byte, 16<<10-4)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range long {
		if passed, err := h.feed(long[i : i+1]); err != nil || len(passed) > 0 {
			t.Fatal(passed, err)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4<<20 || len(h.held) != len(long) {
		t.Errorf("%d bytes are allocated for %d, of which %d are held", after.TotalAlloc-before.TotalAlloc, len(long), len(h.held))
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

// FuzzHellos holds what is passed to be what has come, in order, however it comes, and
// no ClientHello that was refused.
func FuzzHellos(f *testing.F) {
	for _, c := range followed {
		f.Add(c.sent, uint8(3))
	}
	f.Fuzz(func(t *testing.T, sent []byte, each uint8) {
		run := func(each int) (passed []byte, names []string, err error) {
			h := &helloFilter{judge: func(hello *tls.ClientHelloInfo) error {
				if names = append(names, hello.ServerName); hello.ServerName == "evil.example" {
					return errors.New("refused")
				}
				return nil
			}}
			for part := range slices.Chunk(sent, each) {
				b := part
				if !h.done {
					if b, err = h.feed(part); err != nil {
						return passed, names, err
					}
				}
				passed = append(passed, b...)
				if len(h.held) > maxClientHello+len(sent) {
					t.Fatalf("%d bytes are held", len(h.held))
				}
			}
			return passed, names, nil
		}
		whole, names, err := run(max(len(sent), 1))
		parts, same, failed := run(max(int(each), 1))
		if !bytes.HasPrefix(sent, whole) || !bytes.HasPrefix(sent, parts) || !slices.Equal(names, same) || (err == nil) != (failed == nil) {
			t.Fatalf("at once %q %v %v, in parts %q %v %v", whole, names, err, parts, same, failed)
		}
	})
}
