package hostrules

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Datagrams are the rules for UDP. They are apart from those of connections: neither opens anything for the other. They are immutable, and the zero
// Datagrams allow nothing.
type Datagrams struct {
	rules   Rules
	guarded []hostRule // hosts whose requests are judged, or get a secret
}

// What an entry of CompileDatagrams can be refused for, beside being no rule.
var (
	// ErrNoPorts: every port would be HTTP/3's as well.
	ErrNoPorts = errors.New("it names no port")
	// ErrBypass: HTTP/3 could carry requests that are not judged.
	ErrBypass = errors.New("datagrams would go past what judges requests")
	// ErrMulticast: a datagram to them reaches several hosts.
	ErrMulticast = errors.New("the addresses are not one host's each")
)

// CompileDatagrams reads the entries that allow datagrams, which are Compile's and have to name their ports, and those that deny. Guarded are the
// entries of credentials and request rules: where a host is one of theirs, no datagram goes to it at their ports. An error is a *RuleError of the
// list "udp", "deny" or "guarded".
func CompileDatagrams(allow, deny, guarded []string) (d Datagrams, err error) {
	if len(allow) == 0 {
		return Datagrams{}, nil
	}
	if d.rules.allow, err = compileList("udp", allow); err != nil {
		return Datagrams{}, err
	}
	if d.rules.deny, err = compileList("deny", deny); err != nil {
		return Datagrams{}, err
	}
	if d.guarded, err = compileList("guarded", guarded); err != nil {
		return Datagrams{}, err
	}
	for i, e := range d.rules.allow {
		if err := d.validate(e); err != nil {
			return Datagrams{}, &RuleError{List: "udp", Index: i, Entry: e.text, Err: err}
		}
	}
	return d, nil
}

// validate returns the error of an entry that may not be used for datagrams.
func (d Datagrams) validate(e hostRule) error {
	switch {
	case e.lo == 0: // no port that is written is 0
		return ErrNoPorts
	case e.kind == prefix && (e.prefix.Addr().IsMulticast() || e.prefix.IsSingleIP() && !isUnicast(e.prefix.Addr())):
		return ErrMulticast
	}
	for _, g := range d.guarded {
		if e.bypasses(g) {
			return fmt.Errorf("%w: %q", ErrBypass, g.text)
		}
	}
	return nil
}

// bypasses reports whether an entry for datagrams opens nothing but what a guarded one matches, or so much that the two cannot be told apart.
func (e hostRule) bypasses(g hostRule) bool {
	switch {
	case e.hi < g.lo || g.hi < e.lo:
		return false
	case g.kind == anything || e.kind == anything:
		return true
	case e.kind == prefix:
		return g.kind == prefix && g.prefix.Overlaps(e.prefix) || e.public()
	case e.kind == name:
		return g.matches(Host{name: e.name})
	}
	return g.kind == below && strings.HasSuffix(e.name, g.name)
}

// public reports whether an entry is for more than one address, and for the Internet's among them.
func (e hostRule) public() bool {
	return !e.prefix.IsSingleIP() && (!e.admits(e.prefix.Addr()) || isPublic(e.prefix.Addr()))
}

func isPublic(a netip.Addr) bool {
	what, _ := special(a)
	return what == ""
}

// isUnicast reports whether an address belongs to one host.
func isUnicast(a netip.Addr) bool {
	return !a.IsMulticast() && !a.IsUnspecified() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// IsZero reports whether there is no rule that allows anything.
func (d Datagrams) IsZero() bool { return len(d.rules.allow) == 0 }

// Target says whether datagrams may be sent to a host, before its name is looked up. Port 0 asks whether they may be to any port.
func (d Datagrams) Target(h Host, port uint16) Decision {
	v := d.rules.Target(h, port)
	if v.Outcome == Unknown {
		v.Why = fmt.Sprintf("no entry for datagrams names it; %q would", JoinHostPort(h, max(port, 1)))
	}
	if g := d.Guard(h, port); v.Outcome == Allow && g != "" {
		return Decision{Rule: v.Rule, Why: whySupervised(h.String(), g)}
	}
	return v
}

// Address says whether an address may be sent to, as Rules.Address does. One that belongs to several hosts may not, by any entry.
func (d Datagrams) Address(a netip.Addr, port uint16, route Route) Decision {
	a = a.Unmap()
	if !isUnicast(a) {
		return Decision{Why: fmt.Sprintf("%s is not one host's", a)}
	}
	v := d.rules.Address(a, port, route)
	if g := d.Guard(Host{addr: a}, port); v.Outcome == Allow && g != "" {
		return Decision{Rule: v.Rule, Why: whySupervised(a.String(), g)}
	}
	return v
}

// Guard returns the guarded entry that speaks of a host, or "".
func (d Datagrams) Guard(h Host, port uint16) string {
	for _, g := range d.guarded {
		if g.matches(h) && g.coversPort(port) {
			return g.text
		}
	}
	return ""
}

// Names are those that are guarded at a port and can be looked up.
func (d Datagrams) Names(port uint16) []Host {
	var list []Host
	for _, g := range d.guarded {
		if g.kind == name && g.hasPort(port) {
			list = append(list, Host{name: g.name})
		}
	}
	return list
}

func whySupervised(host, entry string) string {
	return fmt.Sprintf("the policy judges the requests to %s by %q, and a datagram's it could not see", host, entry)
}

// Guards reports whether a host is guarded at any port.
func (d Datagrams) Guards(h Host) bool {
	return slices.ContainsFunc(d.guarded, func(g hostRule) bool { return g.matches(h) })
}

// GuardsPort reports whether any host is guarded at a port.
func (d Datagrams) GuardsPort(port uint16) bool {
	return slices.ContainsFunc(d.guarded, func(g hostRule) bool { return g.hasPort(port) })
}
