package hostrules

import (
	"errors"
	"fmt"
	"net/netip"
)

// Datagrams are the rules for UDP. They are apart from those of connections: neither opens anything for the other. They are immutable, and the zero
// Datagrams allow nothing.
type Datagrams struct{ rules Rules }

// What an entry of CompileDatagrams can be refused for, beside being no rule.
var (
	// ErrNoPorts: every port would be HTTP/3's as well.
	ErrNoPorts = errors.New("it names no port")
	// ErrBypass: HTTP/3 could carry requests that are not judged.
	ErrBypass = errors.New("it shares a port with an entry of Credentials or Requests")
	// ErrMulticast: a datagram to them reaches several hosts.
	ErrMulticast = errors.New("the addresses are not one host's each")
)

// CompileDatagrams reads the entries that allow datagrams, which are Compile's and have to name their ports, and those that deny. Guarded are the
// entries of credentials and request rules: an entry that allows datagrams shares no port with these, whatever the hosts, since whom a datagram
// of QUIC is for cannot be seen. An error is a *RuleError of the list "udp", "deny" or "guarded".
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
	judged, err := compileList("guarded", guarded)
	if err != nil {
		return Datagrams{}, err
	}
	for i, e := range d.rules.allow {
		if err := e.validateDatagrams(judged); err != nil {
			return Datagrams{}, &RuleError{List: "udp", Index: i, Entry: e.text, Err: err}
		}
	}
	return d, nil
}

// validateDatagrams returns the error of an entry that may not be used for datagrams.
func (e hostRule) validateDatagrams(guarded []hostRule) error {
	switch {
	case e.lo == 0: // no port that is written is 0
		return ErrNoPorts
	case e.kind == prefix && (e.prefix.Addr().IsMulticast() || e.prefix.IsSingleIP() && !isUnicast(e.prefix.Addr())):
		return ErrMulticast
	}
	for _, g := range guarded {
		if e.lo <= g.hi && g.lo <= e.hi {
			return fmt.Errorf("%w: %q", ErrBypass, g.text)
		}
	}
	return nil
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
		v.Why = fmt.Sprintf("no entry for datagrams names it; %q would allow it", JoinHostPort(h, max(port, 1)))
	}
	return v
}

// Address says whether an address may be sent to, as Rules.Address does. One that belongs to several hosts may not, by any entry.
func (d Datagrams) Address(a netip.Addr, port uint16, route Route) Decision {
	a = a.Unmap()
	if !isUnicast(a) {
		return Decision{Why: fmt.Sprintf("%s is not one host's", a)}
	}
	return d.rules.Address(HostOf(a), a, port, route)
}
