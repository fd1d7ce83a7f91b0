package runner

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ViolationOf says in words what a gateway has denied.
func ViolationOf(e policy.Connection) policy.Violation {
	e = proxy.PrintableEvent(e)
	v := policy.Violation{Bound: policy.BoundNetwork, Time: e.Time, Protocol: e.Protocol, Host: e.Host, Address: e.Address, Port: e.Port, Method: e.Method, Path: e.Path, Rule: e.Rule, Why: e.Reason, Count: 1}
	if v.Why == "" {
		v.Why = e.Err
	}
	v.Remedy = remedyOf(&v)
	return v
}

// remedyOfDatagrams is remedyOf for what Network.UDP has to do with.
func remedyOfDatagrams(v *policy.Violation) string {
	address, ofAddress := closedAddress(v.Why)
	switch {
	case ofAddress:
		return widen(v, "Network.UDP", net.JoinHostPort(address, strconv.Itoa(int(v.Port)))) + ", if that address is meant"
	case strings.HasPrefix(v.Why, "no entry "):
		return widen(v, "Network.UDP", v.Target()) + ", if it cannot do with TCP" + namedByTool
	case strings.Contains(v.Why, "the policy judges"):
		return "nothing does; the tool has to use TCP, where the policy sees what is asked"
	}
	return ""
}

// namedByTool is said wherever a remedy would open a host: the tool may have made it up, to
// have it allowed by a person who follows remedies.
const namedByTool = ", if you trust that host: the tool chose it"

// widen notes the value that would allow what was denied, and says so.
func widen(v *policy.Violation, field, value string) string {
	v.Widening = policy.Widening{Field: field, Value: value}
	return fmt.Sprintf("add %q to %s", value, field)
}

// remedyOf says what in the policy would allow what was denied. Which part of it
// decided, package proxy says in Rule and Why.
func remedyOf(v *policy.Violation) string {
	credential, ofCredential := strings.CutPrefix(v.Rule, "credential ")
	host, ofRequests := strings.CutPrefix(v.Rule, "request rule ")
	address, ofAddress := closedAddress(v.Why)
	limit := limitOf(v.Why)
	datagrams := ""
	if v.Protocol == "udp" {
		datagrams = remedyOfDatagrams(v)
	}
	switch {
	case limit != "":
		return "raise Network.Limits." + limit
	case datagrams != "":
		return datagrams
	case v.Protocol == "ssh-agent" || v.Protocol == "gpg-agent":
		return "nothing does; do it outside of the sandbox"
	case ofCredential && strings.Contains(v.Why, "in clear text"):
		return "nothing does; the tool has to use https"
	case ofCredential:
		return fmt.Sprintf("add %q to the Hosts of the credential %s, if that host is meant to have the secret", v.Target(), credential)
	case ofRequests && strings.HasPrefix(v.Why, "the header "):
		return fmt.Sprintf("leave the header out, or add its name to Headers of the rule for %s in Network.Requests, if its server takes nothing of where a request goes from it", host)
	case ofRequests && strings.Contains(v.Why, "rules about paths cannot judge it"):
		return "nothing does but a rule without Paths; the tool has to write the path plainly"
	case ofRequests:
		return fmt.Sprintf("add a rule to Network.Requests that has %s %s of %s", v.Method, v.Path, host)
	case ofAddress:
		return widen(v, "Network.Hosts", net.JoinHostPort(address, strconv.Itoa(int(v.Port)))) + ", if that address is meant"
	case strings.HasPrefix(v.Why, "not a host"):
		return "name the host plainly"
	case strings.HasPrefix(v.Why, "the entry "):
		return fmt.Sprintf("remove %q from Network.Deny", v.Rule)
	case hostrules.IsLocalhost(v.Host):
		return "name the port in Network.Loopback, if the harness's own is meant; for its own the tool has to ask no proxy"
	case callback.IsByDecide(v.Rule):
		return widen(v, "Network.Hosts", v.Target()) + ", or let Network.Decide allow it" + namedByTool
	case v.Rule == "" && (v.Why == "no rule allows it" || strings.HasPrefix(v.Why, "no entry ")):
		return widen(v, "Network.Hosts", v.Target()) + namedByTool
	}
	return "nothing does; the tool has to ask in another way"
}

// closedAddress is the address that takes an entry of its own; false: none is why.
func closedAddress(why string) (address string, is bool) {
	address, is = strings.CutPrefix(why, "the address ")
	address, _, _ = strings.Cut(address, " ")
	return address, is && strings.Contains(why, "only an entry")
}

// limitOf is the field of NetworkLimits that was reached; "": none was. The words are
// the first, where nothing that a tool has written can stand.
func limitOf(why string) string {
	for _, field := range [...]string{"Connections", "Bytes"} {
		if strings.HasPrefix(why, "the policy's limit on "+strings.ToLower(field)+" is reached") {
			return field
		}
	}
	if number := strings.TrimLeft(why, "0123456789"); number != why && strings.HasPrefix(number, " names were asked for ") {
		return "Names"
	}
	return ""
}
