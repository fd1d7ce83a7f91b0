package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// The lengths of a Credential's Secret: a shorter one would be found in, and taken out of, responses that do not have it.
const (
	minSecret = 8
	maxSecret = 4096
)

// GuardedHosts returns the entries of hosts that get secrets, or whose requests have rules: UDP may have no port of
// theirs, since HTTP/3 would bypass the proxy.
func (n Network) GuardedHosts() []string {
	var list []string
	for _, c := range n.Credentials {
		list = append(list, c.Hosts...)
	}
	for _, r := range n.Requests {
		list = append(list, r.Host)
	}
	return list
}

// WithHosts is the Network with other Hosts, or the error that these would be of a policy.
func (n Network) WithHosts(hosts []string) (Network, error) {
	n.Hosts = slices.Clone(hosts)
	return n, n.validateLists()
}

// validateLists checks Hosts and Deny.
func (n Network) validateLists() error {
	if len(n.Hosts)+len(n.Deny) > 0 {
		if _, err := hostrules.Compile(n.Hosts, n.Deny); err != nil {
			return hostError("Network.Hosts", "Network.Deny", err)
		}
	}
	for i, h := range n.Hosts {
		if hostrules.IsLocalhost(h) {
			return &PolicyError{Field: errtext.Indexed("Network.Hosts", i), Value: h, Problem: "is the tool's own loopback, which is not reached through the proxy", Remedy: "name a port of the harness's in Network.Loopback; the tool's own needs no rule"}
		}
	}
	return nil
}

// validateHosts checks every list in the notation of hosts.
func (n Network) validateHosts() error {
	if err := n.validateLists(); err != nil {
		return err
	}
	for i, c := range n.Credentials {
		if len(c.Secret) < minSecret || len(c.Secret) > maxSecret {
			return &PolicyError{Field: errtext.Indexed("Network.Credentials", i) + ".Secret", Problem: fmt.Sprintf("has %d bytes", len(c.Secret)),
				Remedy: fmt.Sprintf("give one of %d to %d bytes: a shorter one cannot be told from other text", minSecret, maxSecret)}
		}
		if _, err := hostrules.Compile(nil, c.Hosts); err != nil { // @private opens nothing here
			return hostError("", errtext.Indexed("Network.Credentials", i)+".Hosts", err)
		}
	}
	for i, r := range n.Requests {
		if _, err := hostrules.Compile(nil, []string{r.Host}); err != nil {
			bad := hostError("", "", err)
			bad.Field = errtext.Indexed("Network.Requests", i) + ".Host"
			return bad
		}
	}
	return nil
}

// validateReach refuses a credential, or a request rule, for what can never be
// allowed: most often a host that was forgotten, or misspelt, in one of two lists.
func (n Network) validateReach() error {
	rules, err := hostrules.Compile(n.Hosts, n.Deny)
	if err != nil {
		return err
	}
	check := func(field, entry string) error {
		switch d := rules.Reach(entry, n.Decide != nil); d.Outcome {
		case hostrules.Allow:
			return nil
		case hostrules.Deny:
			return &PolicyError{Field: field, Value: entry, Problem: fmt.Sprintf("is denied by the entry %q of Network.Deny", d.Rule), Remedy: "remove one of the two"}
		}
		if hostrules.IsLocalhost(entry) {
			return &PolicyError{Field: field, Value: entry, Problem: "is the tool's own loopback, which is not reached through the proxy", Remedy: "leave it out: traffic to a port of Network.Loopback is not seen"}
		}
		return &PolicyError{Field: field, Value: entry, Problem: "is not among the hosts that Network.Hosts allows", Remedy: fmt.Sprintf("add %q to Network.Hosts", entry)}
	}
	for i, c := range n.Credentials {
		for j, h := range c.Hosts {
			if err := check(errtext.Indexed(errtext.Indexed("Network.Credentials", i)+".Hosts", j), h); err != nil {
				return err
			}
		}
	}
	for i, r := range n.Requests {
		if err := check(errtext.Indexed("Network.Requests", i)+".Host", r.Host); err != nil {
			return err
		}
	}
	return nil
}

// validateUDP comes after validateHosts, which has read every other list.
func (n Network) validateUDP() error {
	_, err := hostrules.CompileDatagrams(n.UDP, n.Deny, n.GuardedHosts())
	if err != nil {
		bad := hostError("Network.UDP", "Network.Deny", err)
		switch {
		case errors.Is(err, hostrules.ErrNoPorts):
			bad.Problem, bad.Remedy = "names no port, and each port is a grant of its own", `write "example.com:123", or a range of ports`
		case errors.Is(err, hostrules.ErrBypass):
			bad.Problem = "opens ports at which hosts get secrets or have their requests judged, which HTTP/3 would go past"
			bad.Remedy = `give those hosts their ports ("api.example.com:443" in Credentials and Requests), and UDP others`
		case errors.Is(err, hostrules.ErrMulticast):
			bad.Problem, bad.Remedy = "is for many hosts at once", "name one that answers"
		}
		return bad
	}
	if i := slices.IndexFunc(n.UDP, hostrules.IsLocalhost); i >= 0 {
		return &PolicyError{Field: errtext.Indexed("Network.UDP", i), Value: n.UDP[i], Problem: "is, for the tool, its own loopback, which no capture sees", Remedy: "leave it out: what the tool sends itself needs no rule"}
	}
	if len(n.UDP) > 0 && n.Capture == nil {
		return &PolicyError{Field: "Network.UDP", Value: n.UDP[0], Problem: "has nothing that could carry datagrams: the proxies do not", Remedy: "set Network.Capture"}
	}
	return nil
}

// hostError names the entry that package hostrules has refused.
func hostError(allow, deny string, err error) *PolicyError {
	bad := &PolicyError{Field: allow, Problem: "is not a rule for hosts", Remedy: `write "example.com", "*.example.com", "example.com:443", "10.0.0.0/8", or "*"`, Err: err}
	if e := (*hostrules.RuleError)(nil); errors.As(err, &e) {
		if e.List == "deny" {
			allow = deny
		}
		bad.Field, bad.Value, bad.Err = errtext.Indexed(allow, e.Index), e.Entry, e.Err
	}
	return bad
}
