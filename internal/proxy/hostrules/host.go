package hostrules

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// A Host is a host in canonical form: a lower-case ASCII name without a trailing
// dot, or an address. Hosts are comparable. The zero Host is invalid.
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
// take for an address (decimal, octal, hexadecimal, short forms), but for those of
// the loopback and the unspecified address. One trailing
// dot is dropped, letters are lowered, international names become their ASCII
// form, IPv4-mapped addresses become IPv4.
func ParseHost(s string) (Host, error) {
	if len(s) == 0 || len(s) > 1024 {
		return Host{}, fmt.Errorf("%w: %d bytes long", ErrHost, len(s))
	}
	if a := zonedLoopback(s); a.IsValid() {
		return Host{addr: a}, nil
	}
	for _, r := range s {
		if r <= ' ' || r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(forbiddenChars, r) {
			return Host{}, fmt.Errorf("%w: %q has %q in it", ErrHost, s, r)
		}
	}
	if bare, ok := strings.CutPrefix(s, "["); ok || strings.Contains(s, ":") {
		return parseIPv6(s, bare, ok)
	}
	return parseName(s)
}

// forbiddenChars are the characters that end a host, or mean something else than themselves,
// to one program or another.
const forbiddenChars = "%/\\@?#<>^|\"'`{}&=+,;!$()*~"

func parseIPv6(s, bare string, bracketed bool) (Host, error) {
	if bracketed {
		var closed bool
		if s, closed = strings.CutSuffix(bare, "]"); !closed {
			return Host{}, fmt.Errorf("%w: %q has a bracket that is not closed, or a port", ErrHost, bare)
		}
	}
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return Host{}, fmt.Errorf("%w: %q is no IPv6 address", ErrHost, s)
	}
	return Host{addr: a.Unmap()}, nil
}

func parseName(s string) (Host, error) {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if a, err := netip.ParseAddr(name); err == nil {
		return Host{addr: a}, nil // four decimal numbers without leading zeros
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) || strings.Contains(name, "xn--") {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return Host{}, fmt.Errorf("%w: %q: %w", ErrHost, s, err)
		}
		name = mapped
	}
	if len(name) > 253 {
		return Host{}, fmt.Errorf("%w: %q is longer than 253 bytes", ErrHost, s)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return Host{}, fmt.Errorf("%w: %q: %w", ErrHost, s, err)
		}
		last = label
	}
	if a := numericLoopback(name); a.IsValid() {
		return Host{addr: a}, nil
	}
	if numeric(last) {
		return Host{}, fmt.Errorf("%w: %q is a number that some programs take for an address", ErrHost, s)
	}
	return Host{name: name}, nil
}

func checkLabel(label string) error {
	if label == "" || len(label) > 63 {
		return fmt.Errorf("a label of %d bytes", len(label))
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return fmt.Errorf("the label %q begins or ends with a hyphen", label)
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("the label %q has %q in it", label, c)
		}
	}
	return nil
}

// numeric reports whether a name that ends in this label is an address to
// inet_aton: decimal and octal are digits, hexadecimal begins with 0x.
func numeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	for _, c := range []byte(digits) {
		if (c < '0' || c > '9') && (!hex || c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ParseHostPort reads host:port. The port is a decimal number from 1 without
// leading zeros. Without a port it is preset; if that is 0 too, it is an error.
func ParseHostPort(s string, preset uint16) (Host, uint16, error) {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (s[0] != '[' || s[i-1] == ']') {
		if host, port = s[:i], s[i+1:]; strings.Contains(host, ":") && host[0] != '[' {
			return Host{}, 0, fmt.Errorf("%w: %q: an IPv6 address needs brackets", ErrHost, s)
		}
		n, err := parsePort(port)
		if err != nil {
			return Host{}, 0, err
		}
		preset = n
	}
	h, err := ParseHost(host)
	if err == nil && preset == 0 {
		err = fmt.Errorf("%w: %q has no port", ErrHost, s)
	}
	return h, preset, err
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("%w: %q is not a port number", ErrHost, s)
	}
	return uint16(n), nil
}

// JoinHostPort is host:port as it is dialled, asked for and shown.
func JoinHostPort(h Host, port uint16) string {
	return net.JoinHostPort(h.String(), strconv.Itoa(int(port)))
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

// HostOf is the host of an address.
func HostOf(a netip.Addr) Host { return Host{addr: a} }

// IsAddr reports whether a host is an address.
func (h Host) IsAddr() bool { return h.addr.IsValid() }

// IsZero reports whether there is no host.
func (h Host) IsZero() bool { return h == Host{} }
