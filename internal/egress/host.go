package egress

import (
	"errors"
	"net/netip"
)

// A Host is a host in canonical form: a lower-case ASCII name without a trailing
// dot, or an address. Hosts are comparable. The zero Host is none.
type Host struct {
	name string
	addr netip.Addr
}

// ErrHost is wrapped by every error of [ParseHost].
var ErrHost = errors.New("not a host")

// ParseHost returns the canonical form of a host as a client or a policy writes
// it: a DNS name, an IPv4 address, an IPv6 address with or without brackets. It
// is the one place where a spelling is judged. Refused are control characters,
// NUL, percent, spaces, zones, ports, and numbers that some resolvers
// take for an address (decimal, octal, hexadecimal, short forms). One trailing
// dot is dropped, letters are lowered, international names become their ASCII
// form, IPv4-mapped addresses become IPv4.
func ParseHost(s string) (Host, error) {
	return parseHost(s)
}

// String returns the name or the address, without brackets.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// Addr returns the address of a host that is one; ok is false for a name.
func (h Host) Addr() (a netip.Addr, ok bool) { return h.addr, h.addr.IsValid() }

// IsZero reports whether there is no host.
func (h Host) IsZero() bool { return h == Host{} }
