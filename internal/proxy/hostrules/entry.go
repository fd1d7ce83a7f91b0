package hostrules

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// A kind is the kind of an entry.
type kind uint8

const (
	name     kind = iota // one name
	below                // every name below a suffix
	anything             // every name, every public address
	prefix               // addresses
)

// A hostRule is one entry of a list.
type hostRule struct {
	text    string // as it was written
	kind    kind
	name    string // the name, or the suffix with its leading dot
	prefix  netip.Prefix
	lo, hi  uint16 // ports; all: 0 to 65535
	private bool   // private addresses, too, that its names have
}

func compileList(list string, entries []string) ([]hostRule, error) {
	var rules []hostRule
	for i, entry := range entries {
		r, err := compileEntry(entry)
		if err == nil && r.private && list != "allow" {
			err = errors.New(atPrivate + " is for what may be connected to by a name")
		}
		if err != nil {
			return nil, &RuleError{List: list, Index: i, Entry: entry, Err: err}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func compileEntry(entry string) (hostRule, error) {
	if strings.Contains(entry, "://") {
		return hostRule{}, errors.New("a URL is not an entry: write its host")
	}
	r := hostRule{text: entry, hi: 65535}
	entry, r.private = strings.CutSuffix(entry, atPrivate)
	host, ports, hasPorts := splitEntry(entry)
	var err error
	if hasPorts {
		if r.lo, r.hi, err = parsePorts(ports); err != nil {
			return hostRule{}, err
		}
	}
	switch suffix, wild := strings.CutPrefix(host, "*."); {
	case host == "*":
		r.kind = anything
	case wild:
		err = r.setBelow(suffix)
	case strings.Contains(host, "/"):
		err = r.setPrefix(host)
	default:
		err = r.setHost(host)
	}
	if err == nil && r.private && (r.kind == anything || r.kind == prefix) {
		err = errors.New(atPrivate + " is for names: which private addresses they have does not matter then")
	}
	return r, err
}

// atPrivate ends an entry of names that may have private addresses.
const atPrivate = "@private"

// splitEntry takes the ports off an entry. More than one colon without brackets
// is an IPv6 address without a port.
func splitEntry(entry string) (host, ports string, hasPorts bool) {
	if rest, ok := strings.CutPrefix(entry, "["); ok {
		inside, after, closed := strings.Cut(rest, "]")
		switch {
		case !strings.Contains(inside, ":"): // brackets are for addresses of IPv6 alone: RFC 3986, 3.2.2
		case closed && after == "":
			return inside, "", false
		case closed && after[0] == ':':
			return inside, after[1:], true
		}
		return entry, "", false // no host: refused there
	}
	if strings.Count(entry, ":") > 1 {
		return entry, "", false
	}
	return strings.Cut(entry, ":")
}

func parsePorts(s string) (lo, hi uint16, err error) {
	first, last, isRange := strings.Cut(s, "-")
	if lo, err = parsePort(first); err != nil || !isRange {
		return lo, lo, err
	}
	if hi, err = parsePort(last); err == nil && hi < lo {
		err = fmt.Errorf("the range of ports %s is empty", s)
	}
	return lo, hi, err
}

func (r *hostRule) setBelow(suffix string) error {
	h, err := ParseHost(suffix)
	if err != nil {
		return err
	}
	if _, isAddr := h.Addr(); isAddr {
		return errors.New("there are no names below an address")
	}
	r.kind, r.name = below, "."+h.name
	return nil
}

func (r *hostRule) setPrefix(s string) error {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return errors.New("neither a host nor addresses as in 10.0.0.0/8")
	case p.Addr().Is4In6():
		return errors.New("write IPv4 addresses as such")
	case p != p.Masked():
		return fmt.Errorf("%s has bits beyond its length: %s, or one address?", p, p.Masked())
	}
	r.kind, r.prefix = prefix, p
	return nil
}

func (r *hostRule) setHost(s string) error {
	h, err := ParseHost(s)
	if _, odd := netip.ParseAddr(strings.TrimSuffix(s, ".")); err == nil && h.IsAddr() && odd != nil {
		return fmt.Errorf("write the address as %s", h)
	}
	if err == nil {
		r.setTo(h)
	}
	return err
}

// setTo has a rule name one host.
func (r *hostRule) setTo(h Host) {
	if h.IsAddr() {
		r.kind, r.prefix = prefix, netip.PrefixFrom(h.addr, h.addr.BitLen())
	} else {
		r.kind, r.name = name, h.name
	}
}

// matches reports whether an entry names a host, whatever the port.
func (r hostRule) matches(h Host) bool {
	var one hostRule
	one.setTo(h)
	return r.has(one)
}

// admits reports whether an allowing entry that speaks of an address is narrow
// enough for it: 0.0.0.0/0 names no private address, 169.254.0.0/16 no metadata
// service.
func (r hostRule) admits(a netip.Addr) bool {
	what, within := special(a)
	return what == "" || r.kind == prefix && within.Contains(r.prefix.Addr()) && r.prefix.Bits() >= within.Bits()
}

func (r hostRule) hasPort(port uint16) bool { return port == 0 || r.lo <= port && port <= r.hi }

// coversPort is hasPort for a denial: any port is denied if all are.
func (r hostRule) coversPort(port uint16) bool {
	if port == 0 {
		return r.lo <= 1 && r.hi == 65535
	}
	return r.hasPort(port)
}

// IsLocalhost reports whether an entry names localhost, which is for a tool its own
// loopback.
func IsLocalhost(entry string) bool {
	name, _, _ := strings.Cut(strings.TrimSuffix(entry, atPrivate), ":")
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}
