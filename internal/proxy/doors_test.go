package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// through asks for a host and port by each of the doors, and returns which of them
// led to a server.
func (w *world) through(host string, port uint16) (led []string) {
	at := fmt.Sprintf("%s:%d", host, port)
	if code, body := w.ask("GET http://" + at + "/ HTTP/1.1\r\nHost: " + at + "\r\n\r\n"); code == 200 {
		led = append(led, "http "+body)
	}
	c, r := w.raw("CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n")
	if res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err == nil && res.StatusCode == 200 {
		led = append(led, "connect")
	}
	c.Close()
	if len(host) < 256 {
		s, got := w.dialSOCKS(named(strings.Trim(host, "[]"), port))
		if len(got) == 12 && got[3] == replyDone {
			led = append(led, "socks")
		}
		s.Close()
	}
	return led
}

// TestEveryDoorReadsAHostAlike: what one of them takes for a name is looked up as
// the same name by all, and what one refuses none looks up.
func TestEveryDoorReadsAHostAlike(t *testing.T) {
	w := newWorld(t, Config{}, "*.good.com", "xn--bcher-kva.example", "king.example", "*")
	for spelling, name := range map[string]string{
		"a.good.com": "a.good.com", "A.GOOD.com": "a.good.com", "a.good.com.": "a.good.com", "a_b.good.com": "a_b.good.com", "xn--bcher-kva.example": "xn--bcher-kva.example", "XN--BCHER-KVA.example": "xn--bcher-kva.example",
		"xn--pple-43d.example": "xn--pple-43d.example", // with a Cyrillic letter, which is not apple.example
		"a..good.com":          "", "a.good.com..": "", ".good.com": "", "-a.good.com": "", "a-.good.com": "", "xn--a.good.com": "", "xn--good-.com": "", "a%00.good.com": "", "a%2e.good.com": "", "evil.example\x00.good.com": "", "evil.example\t.good.com": "",
		"evil.example/.good.com": "", "evil.example#.good.com": "", "evil.example?.good.com": "", "evil.example\\.good.com": "", "evil.example@a.good.com": "", "a.good.com:80": "", "evil.example .good.com": "",
		"127.1": "", "0177.0.0.1": "", "0x7f.0.0.1": "", "0X7F000001": "", "2130706433": "", "017700000001": "", "127.0.0.1": "", "127.0.0.01": "", "1.2.3.4.5": "", "a.0x1": "", "[::1]": "", "[::ffff:127.0.0.1]": "", "[fe80::1%25lo]": "", "[::1%lo]": "",
		"[64:ff9b::7f00:1]": "", "[2002:7f00:1::]": "", "0.0.0.0": "", "[::]": "", "169.254.169.254": "", "[fd00:ec2::254]": "",
		strings.Repeat("a", 64) + ".good.com": "", strings.Repeat("a.", 130) + "good.com": "",
	} {
		w.mu.Lock()
		w.names, w.looked, w.dialed = map[string][]netip.Addr{name: {public}}, nil, nil
		w.mu.Unlock()
		w.web(name, 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) })
		led := w.through(spelling, 80)
		want := "[http " + name + " connect socks]"
		if name == "" {
			want = "[]"
		}
		if fmt.Sprint(led) != want {
			t.Errorf("%q led %v, want %s", spelling, led, want)
		}
		for _, looked := range w.looked {
			if looked != name || name == "" {
				t.Errorf("%q was looked up as %q", spelling, looked)
			}
		}
		if name == "" && len(w.dialed) > 0 {
			t.Errorf("%q was dialled as %v", spelling, w.dialed)
		}
	}
}

// TestANameThatLeadsInwardLeadsNowhere, whichever door it comes by and whatever form
// the address has that a name server gives; and it is asked about each time.
func TestANameThatLeadsInwardLeadsNowhere(t *testing.T) {
	own := netip.MustParseAddr("93.184.216.35")
	w := newWorld(t, Config{Route: routes(own.String())}, "*")
	for _, a := range []string{
		"127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254",
		"::ffff:169.254.169.254", "fd00:ec2::254", "fe80::1", "fc00::1", "224.0.0.1", "ff02::1", "255.255.255.255", own.String(), "::ffff:" + own.String(),
	} {
		to := netip.MustParseAddr(a)
		w.mu.Lock()
		w.names["rebound.example"], w.looked, w.dialed = []netip.Addr{to}, nil, nil
		w.mu.Unlock()
		if led := w.through("rebound.example", 80); len(led) > 0 || len(w.dialed) > 0 {
			t.Errorf("%s: %v, dialled %v", a, led, w.dialed)
		}
		if len(w.looked) != 3 {
			t.Errorf("%s: looked up %d times", a, len(w.looked))
		}
		w.mu.Lock()
		w.names["rebound.example"] = []netip.Addr{to, public, to}
		w.mu.Unlock()
		if w.through("rebound.example", 80); len(w.dialed) != 3 || w.dialed[0].Addr() != public {
			t.Errorf("%s beside a public address: dialled %v", a, w.dialed)
		}
	}
}

// TestNothingButSOCKS5IsSpokenToItsDoor: of SOCKS4 a server would have to look names
// up by itself, and it has no password.
func TestNothingButSOCKS5IsSpokenToItsDoor(t *testing.T) {
	w := newWorld(t, Config{}, "*")
	w.echo("good.com", 80)
	for name, sent := range map[string]string{
		"SOCKS4": "\x04\x01\x00\x50\x5d\xb8\xd8\x22me\x00", "SOCKS4a": "\x04\x01\x00\x50\x00\x00\x00\x01me\x00good.com\x00", "HTTP": "CONNECT good.com:80 HTTP/1.1\r\n\r\n", "TLS": string(clientHello(t, "good.com")), "nothing known": "\x00\x00\x00\x00",
	} {
		if _, got := w.dialSOCKS(sent); len(got) > 0 {
			t.Errorf("%s: %x", name, got)
		}
	}
	c, r := w.raw("\x05\x01\x00\x05\x01\x00\x03\x08good.com\x00\x50\r\n\r\n")
	c.(*net.TCPConn).CloseWrite()
	if b, _ := io.ReadAll(r); !strings.HasPrefix(string(b), "HTTP/1.1 400 ") && len(b) > 0 {
		t.Errorf("SOCKS5 at HTTP's door: %q", b)
	}
	if w.dials() > 0 {
		t.Errorf("dialled %v", w.dialed)
	}
}
