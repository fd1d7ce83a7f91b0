package hostrules

import (
	"net/netip"
	"slices"
	"testing"
)

// routes is a host that has some addresses.
func routes(own ...string) func(netip.Addr) Route {
	return func(a netip.Addr) Route {
		if slices.Contains(own, a.Unmap().String()) {
			return RouteLocal
		}
		return RouteRemote
	}
}

// TestTheHostsOwnAddressTakesAnEntryOfThatOneAddress, in whatever range it is, and so
// does every address that is not the public Internet's where the kernel does not tell.
func TestTheHostsOwnAddressTakesAnEntryOfThatOneAddress(t *testing.T) {
	for _, c := range []struct {
		addr  string
		alone string // the entry of the one address
		wide  string // entries that have it among others
	}{
		{"10.9.9.9", "10.9.9.9", "10.0.0.0/8 10.9.9.0/24 10.9.9.8/31"},
		{"192.168.1.10", "192.168.1.10", "192.168.0.0/16 192.168.1.0/24"},
		{"100.64.0.7", "100.64.0.7", "100.64.0.0/10"},
		{"169.254.7.7", "169.254.7.7", "169.254.0.0/16"},
		{"fd12:3456::9", "fd12:3456::9", "fd00::/8 fd12:3456::/64"},
		{"fe80::9", "fe80::9", "fe80::/10"},
		{"93.184.216.35", "93.184.216.35", "93.184.216.0/24 0.0.0.0/0 *"},
		{"2600:1900::5", "2600:1900::5", "2600:1900::/64 ::/0 *"},
	} {
		a := netip.MustParseAddr(c.addr)
		for _, tt := range []struct {
			allow string
			route Route
			want  Outcome
		}{
			{c.wide, RouteLocal, Deny}, {c.wide, RouteUnknown, Deny}, {c.wide, RouteShared, Deny}, {c.wide, RouteRemote, Allow},
			{c.alone, RouteLocal, Allow}, {c.alone, RouteUnknown, Allow}, {c.alone, RouteShared, Deny}, {c.alone, RouteRemote, Allow},
		} {
			rules := mustCompile(t, tt.allow, "")
			if d := rules.Address(Host{}, a, 443, tt.route); d.Outcome != tt.want || (d.Why == "") != (tt.want == Allow) {
				t.Errorf("allow %q: %s, route %d: %+v", tt.allow, a, tt.route, d)
			}
			datagrams := Datagrams{rules: rules}
			if d := datagrams.Address(a, 443, tt.route); d.Outcome != tt.want {
				t.Errorf("datagrams, allow %q: %s, route %d: %+v", tt.allow, a, tt.route, d)
			}
		}
	}
	for _, loopback := range []string{"127.0.0.1", "127.1.2.3"} { // local to every host
		if d := mustCompile(t, "127.0.0.0/8", "").Address(Host{}, netip.MustParseAddr(loopback), 443, RouteLocal); d.Outcome != Allow {
			t.Errorf("%s: %+v", loopback, d)
		}
	}
}

// TestAMetadataServiceTakesAnEntryOfThatOneAddress, wherever it is.
func TestAMetadataServiceTakesAnEntryOfThatOneAddress(t *testing.T) {
	for _, addr := range []string{"169.254.169.254", "169.254.170.2", "169.254.42.42", "169.254.0.23", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.80.8.124", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "fd00:a9fe:a9fe::1", "fe80::a9fe:a9fe", "fd00:c1::a9fe:a9fe", "100.96.0.96", "100.80.80.80"} {
		a := netip.MustParseAddr(addr)
		if d := mustCompile(t, "* 0.0.0.0/0 ::/0 169.254.0.0/16 100.64.0.0/10 192.0.0.0/24 192.80.8.0/24 fd00::/8 fe80::/10", "").Address(Host{}, a, 80, RouteRemote); d.Outcome != Deny {
			t.Errorf("%s: %+v", a, d)
		}
		if d := mustCompile(t, addr, "").Address(Host{}, a, 80, RouteRemote); d.Outcome != Allow {
			t.Errorf("%s, which an entry names: %+v", a, d)
		}
	}
}

func TestTheRouteToLoopbackIsLocal(t *testing.T) {
	for a, want := range map[string]Route{"127.0.0.1": RouteLocal, "::ffff:127.0.0.1": RouteLocal, "0.0.0.0": RouteLocal, "::": RouteLocal, "93.184.216.34": RouteRemote} {
		if got := RouteOf(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: %d", a, got)
		}
	}
}
