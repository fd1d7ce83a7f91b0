package hostrules

import (
	"fmt"
	"net/netip"
)

// An Outcome is the result of asking rules about a target.
type Outcome uint8

// The outcomes. The zero Outcome denies.
const (
	Deny    Outcome = iota // an entry denies it, or nothing may open it
	Unknown                // no entry matches it: Decide is asked
	Allow
)

// A Decision is the answer of rules about one target or address.
type Decision struct {
	Outcome Outcome
	Rule    string // the entry that decided, as it was written; "": none did
	Why     string // a sentence for a person or a model; "" when allowed
}

// Rules are a compiled allow-list and deny-list. They are immutable. The zero Rules allow nothing.
type Rules struct {
	allow, deny []hostRule
}

// A RuleError names the entry of a list that is invalid.
type RuleError struct {
	List  string // "allow" or "deny"
	Index int
	Entry string
	Err   error
}

// Compile reads an allow-list and a deny-list. An entry is
//
//	example.com            a name, at every port
//	*.example.com          every name below it, but not itself
//	*                      every name, and every public address
//	example.com:443        one port
//	example.com:8000-8100  a range of ports
//	10.0.0.0/8             addresses, which may be private ones
//	10.1.2.3:22            one address, one port
//	[::1]:80               the same for IPv6
//	example.com:443@private  and where that name has a private address (RFC 1918, RFC 4193)
//
// Deny entries win. The error is a [*RuleError].
func Compile(allow, deny []string) (Rules, error) {
	var r Rules
	var err error
	if r.allow, err = compileList("allow", allow); err != nil {
		return Rules{}, err
	}
	if r.deny, err = compileList("deny", deny); err != nil {
		return Rules{}, err
	}
	return r, nil
}

// Target decides about a host before its name is resolved. Port 0 asks whether any port may be reached. An address that is not the public Internet's,
// and that no entry names, is denied and not unknown.
func (r Rules) Target(h Host, port uint16) Decision {
	if h.IsZero() {
		return Decision{Why: "it is not a host"}
	}
	for _, e := range r.deny {
		if e.matches(h) && e.coversPort(port) {
			return Decision{Rule: e.text, Why: fmt.Sprintf("the entry %q of the deny-list names it", e.text)}
		}
	}
	for _, e := range r.allow {
		if e.matches(h) && e.hasPort(port) && (!h.addr.IsValid() || e.admits(h.addr)) {
			return Decision{Outcome: Allow, Rule: e.text}
		}
	}
	if what, _ := special(h.addr); what != "" {
		return Decision{Why: whySpecial(h.addr, what)}
	}
	return Decision{Outcome: Unknown, Why: fmt.Sprintf("no entry of the allow-list names it; %q would allow it", JoinHostPort(h, max(port, 1)))}
}

// Address says whether an address may be dialled, as itself or as what an allowed name resolved to, when the kernel's route to it is known. The
// host's own addresses need an entry of that one address, in whatever range they are, and so do metadata services, and all that are not the public
// Internet's where the route is not known. Others that are not the public Internet's (private, shared, link-local, those that embed an IPv4 address
// to be translated), and loopback, need an entry that lies within their range. What is sent to several hosts at once is not opened.
//
// Private addresses of other hosts are opened, too, to a host that an entry with @private names.
func (r Rules) Address(h Host, a netip.Addr, port uint16, route Route) Decision {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return Decision{Why: "it is not an address"}
	}
	for _, e := range r.deny {
		if e.matches(Host{addr: a}) && e.coversPort(port) {
			return Decision{Rule: e.text, Why: fmt.Sprintf("the entry %q of the deny-list names %s", e.text, a)}
		}
	}
	what, _ := special(a)
	byName := what == "private" && a.IsPrivate() && route == RouteRemote && h.name != ""
	alone := false // only an entry of the one address opens it
	switch {
	case route == RouteShared:
		return Decision{Why: fmt.Sprintf("the address %s is of several hosts at once", a)}
	case a.IsLoopback(): // local to every host, and opened as a range
	case route == RouteLocal:
		what, alone = "of the host itself", true
	case route != RouteRemote:
		what, alone = "perhaps of the host itself, which the kernel does not tell", true
	}
	for _, e := range r.allow {
		if byName && e.private && e.matches(h) && e.hasPort(port) {
			return Decision{Outcome: Allow, Rule: e.text}
		}
		if e.kind == prefix && e.prefix.Contains(a) && e.hasPort(port) && e.admits(a) && (!alone || e.prefix.IsSingleIP()) {
			return Decision{Outcome: Allow, Rule: e.text}
		}
	}
	if byName {
		return Decision{Why: fmt.Sprintf("%s, or %q", whySpecial(a, what), JoinHostPort(h, max(port, 1))+atPrivate)}
	}
	if what != "" {
		return Decision{Why: whySpecial(a, what)}
	}
	return Decision{Outcome: Allow}
}

func whySpecial(a netip.Addr, what string) string {
	return fmt.Sprintf("the address %s is %s; only an entry for that address would allow it", a, what)
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s entry %d, %q: %v", e.List, e.Index, e.Entry, e.Err)
}

func (e *RuleError) Unwrap() error { return e.Err }
