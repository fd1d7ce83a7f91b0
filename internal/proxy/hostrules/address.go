package hostrules

import "net/netip"

// specialRanges are the addresses that are not the public Internet's, by the registries
// for special-purpose addresses (RFC 6890 and what came after), the narrow
// ones before the wide ones. Metadata services come first: what asks them gets the
// credentials of the machine.
var specialRanges = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.170.2/32"), "a cloud's metadata service"},   // ECS
	{netip.MustParsePrefix("169.254.170.23/32"), "a cloud's metadata service"},  // EKS
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud's metadata service"}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata service"},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud's metadata service"},     // Oracle
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.42.42/32"), "a cloud's metadata service"}, // Scaleway
	{netip.MustParsePrefix("fd00:42::42/128"), "a cloud's metadata service"},
	{netip.MustParsePrefix("169.254.0.23/32"), "a cloud's metadata service"},       // Tencent
	{netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), "a cloud's metadata service"}, // Linode
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), "a cloud's metadata service"},   // OpenStack
	{netip.MustParsePrefix("192.80.8.124/32"), "a cloud's metadata service"},       // Equinix Metal, a public address

	{netip.MustParsePrefix("0.0.0.0/8"), "of this host"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier's customers"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("192.0.0.0/24"), "set aside for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "set aside for documentation"},
	{netip.MustParsePrefix("198.51.100.0/24"), "set aside for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "set aside for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay to other addresses"},
	{netip.MustParsePrefix("198.18.0.0/15"), "set aside for measurements"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "another form of an IPv4 address"},
	{netip.MustParsePrefix("64:ff9b::/96"), "another form of an IPv4 address"}, // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), "another form of an IPv4 address"},
	{netip.MustParsePrefix("2001::/32"), "another form of an IPv4 address"}, // Teredo
	{netip.MustParsePrefix("2002::/16"), "another form of an IPv4 address"}, // 6to4
	{netip.MustParsePrefix("2001:db8::/32"), "set aside for documentation"},
	{netip.MustParsePrefix("3fff::/20"), "set aside for documentation"},
	{netip.MustParsePrefix("2001::/23"), "set aside for protocols"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
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
		if r.prefix.Contains(a) {
			return r.what, r.prefix
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "reserved", netip.PrefixFrom(a, 8).Masked()
	}
	return "", netip.Prefix{}
}
