package sandbox

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// mostShown is how many violations the printed report lists.
const mostShown = 10

// violationOf makes a report's line of what a gateway has denied.
func violationOf(e policy.Connection) Violation {
	e = proxy.PrintableEvent(e)
	v := Violation{Bound: policy.BoundNetwork, Time: e.Time, Protocol: e.Protocol, Host: e.Host, Address: e.Address, Port: e.Port, Method: e.Method, Path: e.Path, Rule: e.Rule, Why: e.Reason, Count: 1}
	if v.Why == "" {
		v.Why = e.Err
	}
	v.Remedy = remedyOf(v)
	return v
}

// addDenials adds what a run's network was denied, and what became of it.
func (r *Report) addDenials(s runner.Summary) {
	for _, e := range s.Gateway.Violations {
		v := violationOf(e.Connection)
		v.Count = e.Count
		r.Violations = append(r.Violations, v)
	}
	line := r.Bound(policy.BoundNetwork)
	line.Notes = append(line.Notes, s.Notes...)
	if n := s.Gateway.Beyond; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("%d denials more than are listed", n))
	}
	if n := s.Gateway.Failed; n > 0 {
		last := violationOf(s.Gateway.LastFailed)
		line.Notes = append(line.Notes, fmt.Sprintf("%d of what was allowed failed; the last: %s %s: %s", n, last.Protocol, last.target(), last.Why))
	}
	if s.Gateway.Stuck {
		line.Notes = append(line.Notes, "the proxy was closed, and connections of it have not ended: goroutines of the harness wait for a peer, a Dial or a library")
	}
	if n := s.Gateway.Unobserved; n > 0 {
		line.Notes = append(line.Notes, fmt.Sprintf("Observe was too slow for %d connections", n))
	}
}

// String is one line: what was denied, why, and what would allow it. Whatever a
// terminal would obey is escaped.
func (v Violation) String() string {
	if v.Operation != "" {
		return v.refusal()
	}
	what := v.Protocol + " " + v.target()
	if v.Method != "" {
		what += " " + v.Method + " " + v.Path
	}
	if v.Rule != "" {
		return errtext.Printable(fmt.Sprintf("%s: %s (rule %q; to allow it: %s)", what, v.Why, v.Rule, v.Remedy))
	}
	return errtext.Printable(fmt.Sprintf("%s: %s (to allow it: %s)", what, v.Why, v.Remedy))
}

// target is the host as an entry of Hosts has it.
func (v Violation) target() string {
	host := v.Host
	if v.Port == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(v.Port)))
}

// printViolations prints the first of them, those that say the same as one: clients
// try again.
func (r *Report) printViolations(b *strings.Builder) {
	times, left := map[string]int{}, 0
	var lines []string
	for _, v := range r.Violations {
		line := v.String()
		n := max(v.Count, 1)
		if left += n; times[line] == 0 {
			lines = append(lines, line)
		}
		times[line] += n
	}
	for i, line := range lines {
		n := times[line]
		switch {
		case i == mostShown:
			fmt.Fprintf(b, "  and %d more were denied\n", left)
			return
		case n > 1:
			fmt.Fprintf(b, "  denied %d times: %s\n", n, line)
		default:
			fmt.Fprintf(b, "  denied: %s\n", line)
		}
		left -= n
	}
}

// remedyOfDatagrams is remedyOf for what Network.UDP has to do with.
func remedyOfDatagrams(v Violation) string {
	address, ofAddress := closedAddress(v.Why)
	switch {
	case ofAddress:
		return fmt.Sprintf("add %q to Network.UDP, if that address is meant", net.JoinHostPort(address, strconv.Itoa(int(v.Port))))
	case strings.HasPrefix(v.Why, "no entry "):
		return fmt.Sprintf("add %q to Network.UDP, if it cannot do with TCP%s", v.target(), namedByTool)
	case strings.Contains(v.Why, "the policy judges"):
		return "nothing does; the tool has to use TCP, where the policy sees what is asked"
	}
	return ""
}

// namedByTool is said wherever a remedy would open a host: the tool may have made it up, to
// have it allowed by a person who follows remedies.
const namedByTool = ", if you trust that host: the tool chose it"

// remedyOf says what in the policy would allow what was denied. Which part of it
// decided, package proxy says in Rule and Why.
func remedyOf(v Violation) string {
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
		return fmt.Sprintf("add %q to the Hosts of the credential %s, if that host is meant to have the secret", v.target(), credential)
	case ofRequests && strings.HasPrefix(v.Why, "the header "):
		return fmt.Sprintf("leave the header out, or add its name to Headers of the rule for %s in Network.Requests, if its server takes nothing of where a request goes from it", host)
	case ofRequests && strings.Contains(v.Why, "rules about paths cannot judge it"):
		return "nothing does but a rule without Paths; the tool has to write the path plainly"
	case ofRequests:
		return fmt.Sprintf("add a rule to Network.Requests that has %s %s of %s", v.Method, v.Path, host)
	case ofAddress:
		return fmt.Sprintf("add %q to Network.Hosts, if that address is meant", net.JoinHostPort(address, strconv.Itoa(int(v.Port))))
	case strings.HasPrefix(v.Why, "not a host"):
		return "name the host plainly"
	case strings.HasPrefix(v.Why, "the entry "):
		return fmt.Sprintf("remove %q from Network.Deny", v.Rule)
	case hostrules.IsLocalhost(v.Host):
		return "name the port in Network.Loopback, if the harness's own is meant; for its own the tool has to ask no proxy"
	case v.Rule == "Decide":
		return fmt.Sprintf("add %q to Network.Hosts, or let Network.Decide allow it%s", v.target(), namedByTool)
	case v.Rule == "" && (v.Why == "no rule allows it" || strings.HasPrefix(v.Why, "no entry ")):
		return fmt.Sprintf("add %q to Network.Hosts%s", v.target(), namedByTool)
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

// A Violation is something that a run was denied, as its [Report] lists it: by the rules of its network, an agent's
// filter and a capture included, or, with an Operation, by the supervisor, which refuses names and calls.
type Violation struct {
	Time     time.Time `json:"time"`
	Bound    Bound     `json:"bound"`
	Protocol string    `json:"protocol,omitempty"` // "http", "https", "connect", "socks", with a capture "tcp", "udp" ...
	Host     string    `json:"host,omitempty"`
	Address  string    `json:"address,omitempty"` // if that is what was denied
	Port     uint16    `json:"port,omitempty"`
	Method   string    `json:"method,omitempty"`
	// Operation is what a process wanted, such as "open for writing", if the supervisor has refused it. Path is what it
	// was about, as the kernel names it: a file, or an address. To is the second path.
	Operation string `json:"operation,omitempty"`
	Path      string `json:"path,omitempty"` // without an Operation, that of a request
	To        string `json:"to,omitempty"`
	PID       int    `json:"pid,omitempty"`     // of the process, as it is numbered inside
	Claimed   string `json:"claimed,omitempty"` // its command line or name: the tool's own text, which can say anything

	Rule string `json:"rule,omitempty"` // which rule decided, or "Decide"; "": no rule allows it
	Why  string `json:"why"`
	// Remedy is what in the policy would allow it, or that nothing does. It is for a person:
	// the tool chose the host, and a program that follows remedies has no policy.
	Remedy string `json:"remedy"`
	// Count is how many denials there were by this rule and for this reason, of this host
	// and port by this protocol, or of this operation and path; the other fields tell of the first of them.
	Count int `json:"count"`
}
