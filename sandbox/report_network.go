package sandbox

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// mostShown is how many violations the printed report lists.
const mostShown = 10

// violationOf makes a report's line of what a gateway has denied.
func violationOf(e egress.Event) Violation {
	v := Violation{Time: e.Time, Protocol: e.Protocol, Host: e.Host, Address: e.Address, Port: e.Port, Method: e.Method, Path: e.Path, Rule: e.Rule, Why: e.Reason}
	if v.Why == "" {
		v.Why = e.Err
	}
	v.Remedy = remedyFor(v)
	return v
}

// String is one line: what was denied, why, and what would allow it.
func (v Violation) String() string {
	what := v.Protocol + " " + v.target()
	if v.Method != "" {
		what += " " + v.Method + " " + v.Path
	}
	if v.Rule != "" {
		return fmt.Sprintf("%s: %s (rule %q; to allow it: %s)", what, v.Why, v.Rule, v.Remedy)
	}
	return fmt.Sprintf("%s: %s (to allow it: %s)", what, v.Why, v.Remedy)
}

// target is the host as an entry of Hosts has it.
func (v Violation) target() string {
	host := v.Host
	if v.Port == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(v.Port)))
}

// printViolations prints the first of them.
func (r *Report) printViolations(b *strings.Builder) {
	for i, v := range r.Violations {
		if i == mostShown {
			fmt.Fprintf(b, "  and %d more were denied\n", len(r.Violations)-i)
			return
		}
		fmt.Fprintf(b, "  denied: %s\n", v)
	}
}

// remedyFor says what in the policy would allow what was denied.
func remedyFor(v Violation) string {
	switch {
	case v.Protocol == "ssh-agent" || v.Protocol == "gpg-agent":
		return "nothing does; run it outside of the sandbox"
	case v.Address != "":
		return fmt.Sprintf("add %q to Network.Hosts, if that address is meant", v.Address)
	case v.Rule != "":
		return fmt.Sprintf("change the rule %q", v.Rule)
	}
	return fmt.Sprintf("add %q to Network.Hosts", v.target())
}
