package hostrules

import (
	"errors"
	"fmt"
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

// TestEverySpellingOfTheLoopbackIsThatAddress that some reader takes for it.
func TestEverySpellingOfTheLoopbackIsThatAddress(t *testing.T) {
	for s, want := range map[string]string{
		"127.1": "127.0.0.1", "127.0.1": "127.0.0.1", "2130706433": "127.0.0.1", "2130706434.": "127.0.0.2", "0x7f000001": "127.0.0.1", "0X7F.1": "127.0.0.1", "0177.0.0.1": "127.0.0.1", "017700000001": "127.0.0.1",
		"127.0.0.01": "127.0.0.1", "0x7f.0.0.0x1": "127.0.0.1", "127.16777215": "127.255.255.255", "0": "0.0.0.0", "0x0.0": "0.0.0.0", "１２７.0.0.1": "127.0.0.1", "１２７。０。０。１": "127.0.0.1", "①②⑦.0.0.1": "127.0.0.1",
		"[::1%lo]": "::1", "::1%25lo": "::1", "[::ffff:127.0.0.1%1]": "127.0.0.1", "[::%lo]": "::", "[0:0:0:0:0:0:0:1]": "::1", "[::ffff:7f00:2]": "127.0.0.2", "[::ffff:0:0]": "0.0.0.0",
	} {
		if h, err := ParseHost(s); err != nil || h.String() != want {
			t.Errorf("%q: %v, %v, want %s", s, h, err, want)
		}
	}
}

// TestTheToolsOwnMachineIsInsideUnlessAnEntryNamesIt.
func TestTheToolsOwnMachineIsInsideUnlessAnEntryNamesIt(t *testing.T) {
	rules, err := Compile([]string{"*", "*.corp.example", "127.0.0.1:5432", "127.3.0.0/16:80", "[::1]:7", "db.localhost:9", "::/0"}, []string{"127.9.0.0/16", "no.localhost"})
	if err != nil {
		t.Fatal(err)
	}
	const both = "[127.0.0.1 ::1]"
	for target, want := range map[string]string{
		"127.0.0.1:80": "[127.0.0.1]", "127.0.0.1:5432": "[]", "[::ffff:127.0.0.1]:5432": "[]", "127.0.0.2:5432": "[127.0.0.2]", "0.0.0.0:5432": "[127.0.0.1]", "[::]:7": "[::1]", "[::1]:7": "[]", "[::1]:8": "[::1]",
		"127.3.1.1:80": "[]", "127.3.1.1:81": "[127.3.1.1]", "127.9.0.1:80": "[]", "localhost:5432": both, "LOCALHOST.:1": both, "a.b.localhost:1": both, "db.localhost:9": "[]", "db.localhost:10": both, "no.localhost:1": "[]",
		"ip6-loopback:1": both, "x.localhost.localdomain:1": both, "build-7.corp.example:1": both, "BUILD-7.corp.example.:1": both, "build-8.corp.example:1": "[]", "build-7:1": "[]", "mylocalhost:1": "[]", "localhost.example:1": "[]",
		"0.0.0.1:1": "[]", "10.0.0.1:1": "[]", "[::127.0.0.1]:1": "[]", "[fe80::1]:1": "[]", "169.254.169.254:80": "[]",
	} {
		h, port, err := ParseHostPort(target, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(rules.Own(h, port, "build-7.corp.example")); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	for _, hostname := range []string{"", "93.184.216.34", "(none)"} {
		if own := rules.Own(Host{addr: netip.MustParseAddr("93.184.216.34")}, 1, hostname); own != nil {
			t.Errorf("%q: %v", hostname, own)
		}
	}
}

func TestWhatIsNoHostIsRefused(t *testing.T) {
	for _, s := range []string{
		"", ".", "..", "a..b", ".a", "a.com..", "a b", " a", "a ", "a\x00.good.com", "a%00.good.com", "a%2egood.com", "a\n", "a\r", "a\t", "a\x7f", "a\u00a0b",
		"a/b", "a\\b", "a@b", "a:80", "a#b", "a?b", "*.a", "a,b", "a;b", "(a)", "-a.com", "a-.com", "a.-b", "\xff.com", "a\u200b.com", "a\u00adb.com\x00",
		"128.1", "10.0.1", "2130706432.1", "3232235521", "0xa000001", "0127.0.0.1", "93.184.216.034", "0b1111111.1", "0o177.1", "127_0.1", "1.2.3.0x4", "1.2.3.4.5", "256.1.1.1", "a.1", "a.0x", "1",
		"127.0.0.256", "127.16777216", "4294967296", "１０.0.0.1", "[::1%]", "[::1%a b]", "[::1%lo", "::2%lo", "127.0.0.1%lo",
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
