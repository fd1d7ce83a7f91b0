package hostrules

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// loopbackNames are names that systems have for the loopback address beside localhost and all that is below it
// (RFC 6761, 6.3): those of nss-myhostname(8) and of Debian's and Red Hat's /etc/hosts.
var loopbackNames = []string{"localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"}

// Own returns the addresses of a host that is the tool's own machine to a tool in a network namespace, which is called
// hostname: a loopback or unspecified address, a name of these, or the hostname. Nil: it is another host, or an entry
// denies it, or allows that very name or address and so means the harness's.
func (r Rules) Own(h Host, port uint16, hostname string) []netip.Addr {
	own := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	named := func(e hostRule) bool {
		return (e.kind == name || e.kind == prefix && e.admits(h.addr)) && e.matches(h) && e.hasPort(port)
	}
	switch {
	case slices.ContainsFunc(r.deny, func(e hostRule) bool { return e.matches(h) && e.coversPort(port) }), slices.ContainsFunc(r.allow, named):
		return nil
	case h.addr.IsUnspecified() && h.addr.Is4():
		return own[:1]
	case h.addr.IsUnspecified():
		return own[1:]
	case h.addr.IsLoopback():
		return []netip.Addr{h.addr}
	case slices.Contains(loopbackNames, h.name), strings.HasSuffix(h.name, ".localhost"), strings.HasSuffix(h.name, ".localhost.localdomain"):
		return own
	}
	if self, err := ParseHost(hostname); err == nil && self == h && !h.IsAddr() {
		return own
	}
	return nil
}

// isOwn reports whether an address is the loopback's, or the unspecified one, by which clients reach the loopback.
func isOwn(a netip.Addr) bool { return a.Unmap().IsLoopback() || a.Unmap().IsUnspecified() }

// numericLoopback reads a number that inet_aton(3) takes for an address of the loopback. All others are refused: readers
// disagree about them.
func numericLoopback(s string) (none netip.Addr) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return none
	}
	var bits uint64
	for i, p := range parts {
		room := 8
		if i == len(parts)-1 {
			room = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(p, 0, room)
		if err != nil || strings.HasPrefix(p, "0b") || strings.Trim(p, "0123456789abcdefx") != "" { // 0o1, 1_0
			return none
		}
		bits = bits<<room | n
	}
	if a := netip.AddrFrom4([4]byte{byte(bits >> 24), byte(bits >> 16), byte(bits >> 8), byte(bits)}); isOwn(a) {
		return a
	}
	return none
}

// zonedLoopback reads such an address of IPv6 with a zone, which says nothing of it.
func zonedLoopback(s string) (none netip.Addr) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if s, ok = strings.CutSuffix(inner, "]"); !ok {
			return none
		}
	}
	bare, zone, _ := strings.Cut(s, "%")
	plain := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.'
	}
	a, err := netip.ParseAddr(bare)
	if err != nil || !a.Is6() || !isOwn(a) || strings.TrimFunc(zone, plain) != "" || zone == "" {
		return none
	}
	return a.Unmap()
}
