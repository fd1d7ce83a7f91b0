package hostrules

import (
	"errors"
	"net/netip"
	"testing"
)

func TestEntriesForDatagramsAreHeldAgainstWhatTheyWouldOpen(t *testing.T) {
	guarded := []string{"api.example.com:443", "*.vault.example:8000-8100", "203.0.113.0/24:443"}
	for _, tt := range []struct {
		says    string
		entry   string
		guarded []string
		err     error
	}{
		{"a name and a port", "time.example.com:123", guarded, nil},
		{"a range of ports", "games.example.com:27000-27100", guarded, nil},
		{"a wildcard beside the guarded port", "*:123", guarded, nil},
		{"a guarded host's other port", "api.example.com:442", guarded, nil},
		{"ports beside a guarded range", "api.example.com:8101-9000", guarded, nil},
		{"every address beside the guarded port", "0.0.0.0/0:123", guarded, nil},
		{"every address of IPv6 beside it", "[::/0]:123", guarded, nil},
		{"no port", "time.example.com", nil, ErrNoPorts},
		{"every name and no port", "*", nil, ErrNoPorts},
		{"addresses and no port", "10.0.0.0/8", nil, ErrNoPorts},
		{"a guarded host", "API.example.com.:443", guarded, ErrBypass},
		{"another host at the guarded port", "media.example.com:443", guarded, ErrBypass},
		{"an address at the guarded port", "93.184.216.34:443", guarded, ErrBypass},
		{"private addresses at the guarded port", "10.0.0.0/8:443", guarded, ErrBypass},
		{"every name at the guarded port", "*:443", guarded, ErrBypass},
		{"a range with the guarded port in it", "time.example.com:400-500", guarded, ErrBypass},
		{"a range that ends at it", "time.example.com:400-443", guarded, ErrBypass},
		{"a range that begins at it", "time.example.com:443-500", guarded, ErrBypass},
		{"a port in a guarded range", "time.example.com:8100", guarded, ErrBypass},
		{"any host where every host is guarded", "time.example.com:123", []string{"*:100-200"}, ErrBypass},
		{"any port where a host is guarded at nearly every port", "time.example.com:123", []string{"api.example.com:2-65535"}, ErrBypass},
		{"a group", "224.0.0.251:5353", nil, ErrMulticast},
		{"groups", "[ff00::/8]:5353", nil, ErrMulticast},
		{"everybody", "255.255.255.255:67", nil, ErrMulticast},
		{"nobody", "0.0.0.0:67", nil, ErrMulticast},
		{"what is no entry", "a b:1", nil, ErrHost},
	} {
		_, err := CompileDatagrams([]string{"ok.example:1", tt.entry}, []string{"b.example"}, tt.guarded)
		var r *RuleError
		switch {
		case tt.err == nil && err != nil:
			t.Errorf("%s: %q: %v", tt.says, tt.entry, err)
		case tt.err != nil && (!errors.Is(err, tt.err) || !errors.As(err, &r) || r.List != "udp" || r.Index != 1):
			t.Errorf("%s: %q: %v", tt.says, tt.entry, err)
		}
	}
	if _, err := CompileDatagrams([]string{"ok.example:1"}, nil, []string{"api.example.com"}); !errors.Is(err, ErrBypass) {
		t.Errorf("any port where a host is guarded at every port: %v", err)
	}
	var r *RuleError
	if _, err := CompileDatagrams([]string{"ok.example:1"}, []string{"a b"}, nil); !errors.As(err, &r) || r.List != "deny" {
		t.Error(err)
	}
	if _, err := CompileDatagrams([]string{"ok.example:1"}, nil, []string{"a b"}); !errors.As(err, &r) || r.List != "guarded" {
		t.Error(err)
	}
}

func TestDatagramsAreDecidedByRulesOfTheirOwn(t *testing.T) {
	d, err := CompileDatagrams(
		[]string{"*.example.com:400-500", "10.0.0.0/8:500", "169.254.169.254:80", "*:9"},
		[]string{"bad.example.com", "half.example.com:450", "10.6.0.0/16"},
		[]string{"api.example.com:8443"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		port uint16
		want Outcome
	}{
		{"a.example.com", 400, Allow}, {"a.example.com", 399, Unknown}, {"a.example.com", 501, Unknown}, {"example.com", 450, Unknown},
		{"a.example.com", 0, Allow}, {"b.example", 450, Unknown}, {"b.example", 9, Allow},
		{"bad.example.com", 400, Deny}, {"bad.example.com", 9, Deny}, {"bad.example.com", 0, Deny},
		{"half.example.com", 450, Deny}, {"half.example.com", 451, Allow}, {"half.example.com", 0, Allow},
		{"api.example.com", 443, Allow}, {"api.example.com", 8443, Unknown}, {"api.example.com", 0, Allow},
		{"10.1.2.3", 500, Allow}, {"10.1.2.3", 9, Deny}, {"10.6.2.3", 500, Deny}, {"192.168.0.1", 500, Deny},
		{"169.254.169.254", 80, Allow}, {"169.254.169.253", 80, Deny}, {"93.184.216.34", 9, Allow},
	} {
		h, err := ParseHost(tt.host)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Target(h, tt.port)
		if got.Outcome != tt.want || (got.Why == "") != (got.Outcome == Allow) {
			t.Errorf("%s at %d: %+v", tt.host, tt.port, got)
		}
		if (Datagrams{}).Target(h, tt.port).Outcome == Allow {
			t.Errorf("%s at %d: no rules allow it", tt.host, tt.port)
		}
	}
}

func TestAnAddressForDatagramsIsOneHostsAndNobodyElses(t *testing.T) {
	d, err := CompileDatagrams([]string{"0.0.0.0/0:9", "[::/0]:9", "10.0.0.0/8:500", "a.example:443", "192.168.1.1:9", "240.0.0.0/4:9", "0.0.0.0/8:9"}, []string{"93.184.0.0/16:9", "93.184.216.34:443"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	route := routes("198.41.0.4", "10.1.1.2")
	for _, tt := range []struct {
		addr string
		port uint16
		want Outcome
	}{
		{"8.8.8.8", 9, Allow}, {"93.184.216.34", 9, Deny}, {"93.184.216.34", 443, Deny}, {"93.184.216.35", 443, Allow},
		{"198.41.0.4", 9, Deny}, {"10.1.1.1", 500, Allow}, {"10.1.1.2", 500, Deny}, {"10.1.1.1", 9, Deny}, {"192.168.1.1", 9, Allow}, {"169.254.169.254", 9, Deny},
		{"::ffff:169.254.169.254", 9, Deny}, {"::ffff:93.184.216.34", 443, Deny}, {"127.0.0.1", 9, Deny}, {"::1", 9, Deny},
		{"224.0.0.251", 9, Deny}, {"255.255.255.255", 9, Deny}, {"0.0.0.0", 9, Deny}, {"ff02::fb", 9, Deny}, {"::", 9, Deny},
	} {
		if got := d.Address(netip.MustParseAddr(tt.addr), tt.port, route(netip.MustParseAddr(tt.addr))); got.Outcome != tt.want {
			t.Errorf("%s at %d: %+v", tt.addr, tt.port, got)
		}
	}
}
