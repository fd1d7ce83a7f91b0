package hostrules

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestOneHostHasOneForm(t *testing.T) {
	for s, want := range map[string]string{
		"example.com":                 "example.com",
		"EXAMPLE.Com":                 "example.com",
		"example.com.":                "example.com",
		"a_b.example.com":             "a_b.example.com",
		"r3---sn-abc.example.com":     "r3---sn-abc.example.com",
		"localhost":                   "localhost",
		"bücher.example":              "xn--bcher-kva.example",
		"BÜCHER.example":              "xn--bcher-kva.example",
		"xn--bcher-kva.example":       "xn--bcher-kva.example",
		"example。com":                 "example.com", // an ideographic full stop
		"ｅｘａｍｐｌｅ.com":                 "example.com",
		"1.example.com":               "1.example.com",
		"0x7f.example.com":            "0x7f.example.com",
		"93.184.216.34":               "93.184.216.34",
		"93.184.216.34.":              "93.184.216.34",
		"::1":                         "::1",
		"[::1]":                       "::1",
		"[2606:2800:220:1::248]":      "2606:2800:220:1::248",
		"2606:2800:0220:0001:0:0:0:1": "2606:2800:220:1::1",
		"::ffff:10.0.0.1":             "10.0.0.1",
		"[::FFFF:0a00:1]":             "10.0.0.1",
	} {
		h, err := ParseHost(s)
		if err != nil || h.String() != want {
			t.Errorf("%q: %v %v, want %s", s, h, err, want)
		}
	}
}

func TestWhatIsNoHostIsRefused(t *testing.T) {
	for _, s := range []string{
		"", ".", "..", "a..b", ".a", "a.com..", "a b", " a", "a ", "a\x00.good.com", "a%00.good.com", "a%2egood.com", "a\n", "a\r", "a\t", "a\x7f", "a\u00a0b",
		"a/b", "a\\b", "a@b", "a:80", "a#b", "a?b", "*.a", "a,b", "a;b", "(a)", "-a.com", "a-.com", "a.-b", "\xff.com", "a\u200b.com", "a\u00adb.com\x00",
		"127.1", "127.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.01", "0x7f.0.0.1", "1.2.3.0x4", "1.2.3.4.5", "256.1.1.1", "a.1", "a.0x", "1", "0",
		"１２７.0.0.1", "１２７。０。０。１", "①②⑦.0.0.1",
		"fe80::1%eth0", "[fe80::1%25eth0]", "[::1", "::1]", "[127.0.0.1]", "[a]", "[]", ":", ":::", "[::1]:80", "1:2:3:4:5:6:7", "::ffff:127.1",
		"xn--", "xn--a.com", "xn--zzzzzzzz999.com", strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 127) + "com", strings.Repeat("a", 5000),
	} {
		if h, err := ParseHost(s); err == nil || !errors.Is(err, ErrHost) || !h.IsZero() {
			t.Errorf("%q is %v, %v", s, h, err)
		}
	}
}

func TestHostAndPort(t *testing.T) {
	for s, want := range map[string]string{
		"a.com:80": "a.com:80", "a.com": "a.com:7", "[::1]:65535": "[::1]:65535", "[::1]": "[::1]:7", "1.2.3.4:1": "1.2.3.4:1",
	} {
		if h, p, err := ParseHostPort(s, 7); err != nil || JoinHostPort(h, p) != want {
			t.Errorf("%q: %v %d %v", s, h, p, err)
		}
	}
	for _, s := range []string{"", ":", ":80", "a.com:", "a.com:0", "a.com:080", "a.com:+1", "a.com:-1", "a.com:65536", "a.com:8 0", "a.com:http", "::1", "::1:80", "a.com:80:80", "[::1]80", "[::1]:"} {
		if h, p, err := ParseHostPort(s, 7); err == nil {
			t.Errorf("%q: %v %d", s, h, p)
		}
	}
	if _, _, err := ParseHostPort("a.com", 0); err == nil {
		t.Error("a host without a port where it needs one")
	}
}

// FuzzHost holds what is a host to what everything after it relies on.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "bücher.example", "127.1", "::ffff:1.2.3.4", "a\x00b", "１２７。０。０。１", "[::1]", "xn--bcher-kva.com", "fe80::1%1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if !h.IsZero() {
				t.Fatalf("%q is refused and %v", s, h)
			}
			return
		}
		form := h.String()
		if again, err := ParseHost(form); err != nil || again != h {
			t.Fatalf("%q is %q, which is %v, %v", s, form, again, err)
		}
		if upper, err := ParseHost(strings.ToUpper(form)); err != nil || upper != h {
			t.Fatalf("%q in capitals is %v, %v", form, upper, err)
		}
		if strings.Trim(form, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" || strings.HasSuffix(form, ".") || len(form) > 253 || form == "" {
			t.Fatalf("%q is %q", s, form)
		}
		a, isAddr := h.Addr()
		if parsed, err := netip.ParseAddr(form); isAddr != (err == nil) || isAddr && parsed != a || a.Zone() != "" || a.Is4In6() {
			t.Fatalf("%q: %q is an address to one and not to the other", s, form)
		}
		if !isAddr && strings.Contains(form, ":") {
			t.Fatalf("%q is a name with a colon, %q", s, form)
		}
	})
}
