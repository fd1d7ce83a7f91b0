package hostrules

import (
	"net/netip"
	"slices"
	"strings"
)

// specialRanges are the addresses that are not the public Internet's, by the registries for special-purpose addresses
// (RFC 6890 and what came after), the narrow ones before the wide ones. Metadata services come first: what asks them gets
// the credentials of the machine.
var specialRanges = []struct {
	what   string
	ranges []netip.Prefix
}{
	{"a cloud's metadata service", prefixes("169.254.169.254/32 fd00:ec2::254/128 fd00:ec2::23/128 169.254.170.2/32 169.254.170.23/32")}, // most clouds; ECS, EKS
	{"a cloud's metadata service", prefixes("100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd20:ce::254/128")},                      // Alibaba, Azure, Oracle, GCE
	{"a cloud's metadata service", prefixes("169.254.42.42/32 fd00:42::42/128 169.254.0.23/32 fd00:a9fe:a9fe::1/128")},                   // Scaleway, Tencent, Linode
	{"a cloud's metadata service", prefixes("fe80::a9fe:a9fe/128 192.80.8.124/32")},                                                      // OpenStack; Equinix Metal, a public address
	{"a cloud's metadata service", prefixes("fd00:c1::a9fe:a9fe/128 100.96.0.96/32 100.80.80.80/32")},                                    // Oracle, Volcengine, UCloud
	{"of this host", prefixes("0.0.0.0/8")},
	{"the harness's loopback", prefixes("127.0.0.0/8 ::1/128")},
	{"private", prefixes("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10")},
	{"shared by a carrier's customers", prefixes("100.64.0.0/10")},
	{"link-local", prefixes("169.254.0.0/16 fe80::/10")},
	{"set aside for documentation", prefixes("192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20")},
	{"a relay to other addresses", prefixes("192.88.99.0/24")},
	{"set aside for measurements", prefixes("198.18.0.0/15")},
	{"multicast", prefixes("224.0.0.0/4 ff00::/8")},
	{"reserved", prefixes("240.0.0.0/4")},
	{"another form of an IPv4 address", prefixes("::/96 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16")}, // NAT64, Teredo, 6to4
	{"set aside for protocols", prefixes("192.0.0.0/24 2001::/23")},
}

func prefixes(s string) (list []netip.Prefix) {
	for p := range strings.FieldsSeq(s) {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}

// globalUnicast is the part of IPv6 that is assigned to hosts (RFC 4291, 2.4).
var globalUnicast = netip.MustParsePrefix("2000::/3")

// special describes an address that is not of the public Internet, with its range. "":
// it is public, or invalid.
func special(a netip.Addr) (what string, within netip.Prefix) {
	if !a.IsValid() {
		return "", netip.Prefix{}
	}
	for _, r := range specialRanges {
		if i := slices.IndexFunc(r.ranges, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
			return r.what, r.ranges[i]
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "reserved", netip.PrefixFrom(a, 8).Masked()
	}
	return "", netip.Prefix{}
}
