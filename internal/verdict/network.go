package verdict

import (
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// allowsLoopback answers for the sandbox's own loopback, some ports of which may be
// the harness's.
func allowsLoopback(n policy.Network, a Access) (bool, Reason) {
	r := Reason{Bound: policy.BoundNetwork, Why: "the sandbox has a loopback of its own: what listens there is inside"}
	if i := slices.Index(n.Loopback, uint16(a.Port)); i >= 0 && a.Network == "tcp" {
		r.Field, r.Why = errtext.Indexed("Network.Loopback", i), "the port is passed on to the harness's own loopback"
	}
	return true, r
}

// allowsBare answers where neither files nor processes are bounded: there is no
// network of the sandbox's own, and no socket but those that connect to the proxies
// and to ports of the harness's loopback.
func allowsBare(n policy.Network, a Access) (bool, Reason) {
	r := Reason{Bound: policy.BoundNetwork, Field: "Network", Why: "where nothing else is bounded there is no network of the sandbox's own, and no socket for this", Remedy: "set Network.Host"}
	switch i := slices.Index(n.Loopback, uint16(a.Port)); {
	case a.Network != "tcp" || a.Op != OpConnect:
	case !IsLoopback(a.Host) && n.Proxied():
		return allowsHost(n, a)
	case (a.Host == "localhost" || a.Host == "127.0.0.1") && i >= 0:
		return true, Reason{Bound: policy.BoundNetwork, Field: errtext.Indexed("Network.Loopback", i), Why: "the port is the harness's own loopback's"}
	}
	return false, r
}

// allowsHost answers for every other address: what the rules say of it before
// its name is looked up. What it resolves to is judged when that is done, and may
// be refused then.
func allowsHost(n policy.Network, a Access) (bool, Reason) {
	r := Reason{Bound: policy.BoundNetwork, Field: "Network"}
	if !n.Proxied() {
		r.Why, r.Remedy = "there is no network but a loopback of the sandbox's own", "name the host in Network.Hosts"
		return false, r
	}
	if a.Network == "udp" && len(n.UDP) == 0 {
		r.Why, r.Remedy = "no datagrams are carried", "name the host and the port in Network.UDP, with a Capture"
		return false, r
	}
	host, err := hostrules.ParseHost(a.Host)
	if err != nil || a.Port < 1 || a.Port > 65535 {
		r.Why, r.Remedy = strconv.Quote(a.Host)+" and "+strconv.Itoa(a.Port)+" are no host and port", "name the host plainly"
		return false, r
	}
	if a.Network == "udp" {
		return allowsDatagrams(n, host, uint16(a.Port))
	}
	rules, err := hostrules.Compile(n.Hosts, n.Deny)
	if err != nil {
		return false, badPolicy(err)
	}
	d := rules.Target(host, uint16(a.Port))
	r.Field = fieldOfHost(n, d.Rule)
	switch d.Outcome {
	case hostrules.Allow:
		r.Why = "a rule allows it; its addresses are judged when they are known"
		return true, r
	case hostrules.Unknown:
		if n.Decide != nil {
			r.Field = "Network.Decide"
		}
	}
	r.Why = d.Why
	if r.Why == "" {
		r.Why = "no rule speaks of it"
	}
	if d.Outcome == hostrules.Unknown {
		r.Remedy = "add " + strconv.Quote(hostrules.JoinHostPort(host, uint16(a.Port))) + " to Network.Hosts"
	}
	return false, r
}

// allowsDatagrams is allowsHost of datagrams, which have rules of their own.
func allowsDatagrams(n policy.Network, host hostrules.Host, port uint16) (bool, Reason) {
	rules, err := hostrules.CompileDatagrams(n.UDP, n.Deny, n.GuardedHosts())
	if err != nil {
		return false, badPolicy(err)
	}
	d := rules.Target(host, port)
	r := Reason{Bound: policy.BoundNetwork, Field: fieldOfEntry(n, "Network.UDP", n.UDP, d.Rule), Why: d.Why}
	switch d.Outcome {
	case hostrules.Allow:
		r.Why = "a rule allows datagrams to it; its addresses are judged when they are known"
		return true, r
	case hostrules.Unknown:
		r.Remedy = "add " + strconv.Quote(hostrules.JoinHostPort(host, port)) + " to Network.UDP"
	}
	return false, r
}

// fieldOfHost returns the field of the entry that has decided.
func fieldOfHost(n policy.Network, entry string) string {
	return fieldOfEntry(n, "Network.Hosts", n.Hosts, entry)
}

// fieldOfEntry looks in Deny, then in the list that allows.
func fieldOfEntry(n policy.Network, field string, list []string, entry string) string {
	if i := slices.Index(n.Deny, entry); i >= 0 {
		return errtext.Indexed("Network.Deny", i)
	}
	if i := slices.Index(list, entry); i >= 0 {
		return errtext.Indexed(field, i)
	}
	return field
}
