package hostrules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func mustCompile(t testing.TB, allow, deny string) Rules {
	t.Helper()
	r, err := Compile(strings.Fields(allow), strings.Fields(deny))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustHost(t testing.TB, s string) Host {
	t.Helper()
	h, err := ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		allow, deny, host string
		port              uint16
		want              Outcome
		rule              string
	}{
		{"", "", "example.com", 443, Unknown, ""},
		{"example.com", "", "example.com", 443, Allow, "example.com"},
		{"Example.COM.", "", "example.com", 1, Allow, "Example.COM."},
		{"example.com", "", "a.example.com", 443, Unknown, ""},
		{"example.com", "", "example.com.evil.com", 443, Unknown, ""},
		{"example.com", "", "badexample.com", 443, Unknown, ""},
		{"*.example.com", "", "example.com", 443, Unknown, ""},
		{"*.example.com", "", "badexample.com", 443, Unknown, ""},
		{"*.example.com", "", "a.b.example.com", 443, Allow, "*.example.com"},
		{"example.com:443", "", "example.com", 443, Allow, "example.com:443"},
		{"example.com:443", "", "example.com", 80, Unknown, ""},
		{"example.com:443", "", "example.com", 0, Allow, "example.com:443"},
		{"a.com:8000-8100", "", "a.com", 8100, Allow, "a.com:8000-8100"},
		{"a.com:8000-8100", "", "a.com", 8101, Unknown, ""},
		{"*", "", "anything.example", 22, Allow, "*"},
		{"*:443", "", "anything.example", 22, Unknown, ""},
		{"*", "", "93.184.216.34", 22, Allow, "*"},
		{"*", "", "10.0.0.1", 22, Deny, ""},
		{"*", "", "127.0.0.1", 22, Deny, ""},
		{"", "", "169.254.169.254", 80, Deny, ""},
		{"", "", "93.184.216.34", 80, Unknown, ""},
		{"10.0.0.0/8", "", "10.9.8.7", 22, Allow, "10.0.0.0/8"},
		{"10.0.0.0/8:22", "", "10.9.8.7", 23, Deny, ""},
		{"0.0.0.0/0", "", "10.9.8.7", 22, Deny, ""},
		{"0.0.0.0/0", "", "93.184.216.34", 22, Allow, "0.0.0.0/0"},
		{"169.254.0.0/16", "", "169.254.169.254", 80, Deny, ""},
		{"169.254.169.254:80", "", "169.254.169.254", 80, Allow, "169.254.169.254:80"},
		{"::/0", "", "::1", 80, Deny, ""},
		{"[::1]:80", "", "::1", 80, Allow, "[::1]:80"},
		{"::1", "", "::1", 80, Allow, "::1"},
		{"[fd00::/8]:443", "", "fd12::1", 443, Allow, "[fd00::/8]:443"},
		{"example.com", "example.com", "example.com", 443, Deny, "example.com"},
		{"*", "*.evil.com evil.com", "a.evil.com", 443, Deny, "*.evil.com"},
		{"*", "evil.com:25", "evil.com", 443, Allow, "*"},
		{"*", "evil.com:25", "evil.com", 25, Deny, "evil.com:25"},
		{"*", "evil.com:25", "evil.com", 0, Allow, "*"},
		{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", 22, Deny, "10.1.0.0/16"},
		{"*", "*", "example.com", 443, Deny, "*"},
		{"bücher.example", "", "xn--bcher-kva.example", 443, Allow, "bücher.example"},
	} {
		d := mustCompile(t, c.allow, c.deny).Target(mustHost(t, c.host), c.port)
		if d.Outcome != c.want || d.Rule != c.rule || (d.Why == "") != (c.want == Allow) {
			t.Errorf("allow %q deny %q: %s port %d: %+v", c.allow, c.deny, c.host, c.port, d)
		}
	}
}

func TestANameMayHavePrivateAddresses(t *testing.T) {
	for _, c := range []struct {
		allow, deny, host, addr string
		route                   Route
		want                    Outcome
	}{
		{"mirror.example:443@private", "", "Mirror.example.", "10.1.2.3", RouteRemote, Allow},
		{"mirror.example@private", "", "mirror.example", "172.16.0.1", RouteRemote, Allow},
		{"mirror.example@private", "", "mirror.example", "::ffff:192.168.1.1", RouteRemote, Allow},
		{"mirror.example@private", "", "mirror.example", "fd00::8", RouteRemote, Allow},
		{"mirror.example@private", "", "mirror.example", "93.184.216.34", RouteRemote, Allow},
		{"*.example@private", "", "a.mirror.example", "10.1.2.3", RouteRemote, Allow},
		{"mirror.example", "", "mirror.example", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example:80@private", "", "mirror.example", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example@private *", "", "other.example", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example@private *", "", "a.mirror.example", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example@private *", "", "10.1.2.3", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example@private", "10.0.0.0/8", "mirror.example", "10.1.2.3", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "10.1.2.3", RouteLocal, Deny},
		{"mirror.example@private", "", "mirror.example", "10.1.2.3", RouteUnknown, Deny},
		{"mirror.example@private", "", "mirror.example", "10.1.2.255", RouteShared, Deny},
		{"mirror.example@private", "", "mirror.example", "127.0.0.1", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "::1", RouteLocal, Deny},
		{"mirror.example@private", "", "mirror.example", "169.254.169.254", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "fd00:ec2::254", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "169.254.1.1", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "fe80::1", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "fec0::1", RouteRemote, Deny},
		{"mirror.example@private", "", "mirror.example", "100.64.0.1", RouteRemote, Deny},
		{"localhost@private", "", "localhost", "127.0.0.1", RouteLocal, Deny},
	} {
		h, err := ParseHost(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if d := mustCompile(t, c.allow, c.deny).Address(h, netip.MustParseAddr(c.addr), 443, c.route); d.Outcome != c.want || (d.Why == "") != (c.want == Allow) {
			t.Errorf("allow %q deny %q: %s at %s, route %v: %+v", c.allow, c.deny, c.host, c.addr, c.route, d)
		}
	}
	for _, entry := range []string{"*@private", "*:443@private", "10.0.0.0/8@private", "10.1.2.3@private", "[fd00::1]:443@private", "a.example@private:443", "a.example@public", "@private"} {
		if _, err := Compile([]string{entry}, nil); err == nil {
			t.Errorf("%q is an entry", entry)
		}
	}
	if _, err := Compile(nil, []string{"a.example@private"}); err == nil {
		t.Error("it denies")
	}
	if _, err := CompileDatagrams([]string{"a.example:53@private"}, nil, nil); err == nil {
		t.Error("it is for datagrams")
	}
}

func TestAddressesAfterTheLookup(t *testing.T) {
	for _, c := range []struct {
		allow, deny, addr string
		want              Outcome
	}{
		{"", "", "93.184.216.34", Allow},
		{"", "", "2606:2800:220:1::248", Allow},
		{"*", "93.184.216.0/24", "93.184.216.34", Deny},
		{"*", "0.0.0.0/0", "::ffff:93.184.216.34", Deny},
		{"10.0.0.0/8", "", "10.0.0.1", Allow},
		{"10.0.0.0/8", "", "::ffff:10.0.0.1", Allow},
		{"10.0.0.0/8:22", "", "10.0.0.1", Deny},
		{"0.0.0.0/0 ::/0 * localhost", "", "127.0.0.1", Deny},
		{"127.0.0.1", "", "127.0.0.1", Allow},
		{"127.0.0.0/8", "", "127.0.0.1", Allow},
	} {
		if d := mustCompile(t, c.allow, c.deny).Address(Host{}, netip.MustParseAddr(c.addr), 443, RouteRemote); d.Outcome != c.want || (d.Why == "") != (c.want == Allow) {
			t.Errorf("allow %q deny %q: %s: %+v", c.allow, c.deny, c.addr, d)
		}
	}
	for _, a := range []string{"0.0.0.0", "0.1.2.3", "10.1.1.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.9.9.9", "168.63.129.16", "192.80.8.124", "169.254.1.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "5f00::1", "4000::1", "fe80::1%eth0"} {
		if d := mustCompile(t, "*", "").Address(Host{}, netip.MustParseAddr(a), 443, RouteRemote); d.Outcome != Deny {
			t.Errorf("%s: %+v", a, d)
		}
	}
	if d := (Rules{}).Address(Host{}, netip.Addr{}, 1, RouteRemote); d.Outcome != Deny {
		t.Error("no address is allowed")
	}
	if d := (Rules{}).Target(Host{}, 1); d.Outcome != Deny {
		t.Error("no host is allowed")
	}
}

func TestNilAndEmptyListsAllowNothing(t *testing.T) {
	for _, list := range [][]string{nil, {}} {
		r, err := Compile(list, list)
		if d := r.Target(mustHost(t, "example.com"), 443); err != nil || d.Outcome == Allow {
			t.Errorf("%+v %v", d, err)
		}
	}
}

func TestWhatIsNoEntryIsRefusedByItsIndex(t *testing.T) {
	for _, entry := range []string{"", " ", "https://example.com", "example.com/path", "*.", "**", "a.*.com", "*a.com", "*.10.0.0.1", "a.com:", "a.com:0", "a.com:70000", "a.com:9-8", "a.com:1-", "a.com:x",
		"10.0.0.1/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "[::1", "[::1]x", "127.1", "a b", "a%b", "fe80::1%eth0", "*:0", "10.0.0.0/8/8"} {
		_, err := Compile([]string{"fine.example", entry}, nil)
		var e *RuleError
		if !errors.As(err, &e) || e.Index != 1 || e.Entry != entry || e.List != "allow" {
			t.Errorf("%q: %v", entry, err)
		}
		if _, err = Compile(nil, []string{entry}); !errors.As(err, &e) || e.List != "deny" {
			t.Errorf("deny %q: %v", entry, err)
		}
	}
}

// FuzzRules holds rules to what they promise: a deny entry wins, and an entry
// that is a host allows that host alone.
func FuzzRules(f *testing.F) {
	f.Add("*.example.com:443", "a.example.com", uint16(443))
	f.Add("10.0.0.0/8", "10.1.2.3", uint16(22))
	f.Add("::/0", "::1", uint16(1))
	f.Fuzz(func(t *testing.T, entry, host string, port uint16) {
		h, err := ParseHost(host)
		if err != nil {
			return
		}
		allow, err := Compile([]string{entry}, nil)
		if err != nil {
			return
		}
		deny, err := Compile([]string{entry, "*", "0.0.0.0/0", "::/0"}, []string{entry})
		if err != nil {
			t.Fatal(err)
		}
		a, d := allow.Target(h, port), deny.Target(h, port)
		if port > 0 && a.Outcome == Allow && d.Outcome != Deny {
			t.Fatalf("%q allows %s:%d, and does not deny it: %+v", entry, h, port, d)
		}
		if a.Outcome == Allow && allow.Target(h, 0).Outcome != Allow {
			t.Fatalf("%q allows %s at port %d, and at none", entry, h, port)
		}
		if one, err := ParseHost(entry); err == nil && (a.Outcome == Allow) != (one == h) {
			t.Fatalf("%q allows %s: %+v", entry, h, a)
		}
		if addr, ok := h.Addr(); ok && port > 0 {
			if what, _ := special(addr); what != "" && fmt.Sprint(a.Outcome) != fmt.Sprint(allow.Address(Host{}, addr, port, RouteRemote).Outcome) {
				t.Fatalf("%q on %s:%d: %+v before the look-up, %+v after it", entry, h, port, a, allow.Address(Host{}, addr, port, RouteRemote))
			}
		}
	})
}
