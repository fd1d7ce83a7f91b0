package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// validate is everything that can be said of a policy without looking at the
// host. It returns a *PolicyError for the first thing that is wrong, or nil.
func validate(p Policy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, check := range [...]func(Network) error{validateHosts, validateUDP, validateReach} {
		if err := check(p.Network); err != nil {
			return err
		}
	}
	return nil
}

// validateHosts judges every list in the notation of hosts.
func validateHosts(n Network) error {
	if len(n.Hosts)+len(n.Deny) > 0 {
		if _, err := hostrules.Compile(n.Hosts, n.Deny); err != nil {
			return hostError("Network.Hosts", "Network.Deny", err)
		}
	}
	for i, h := range n.Hosts {
		if isLocalhost(h) {
			return &PolicyError{Field: errtext.Indexed("Network.Hosts", i), Value: h, Problem: "is the tool's own loopback, which is not reached through the proxy", Remedy: "name a port of the harness's in Network.Loopback; the tool's own needs no rule"}
		}
	}
	for i, c := range n.Credentials {
		if len(c.Secret) < proxy.MinSecret || len(c.Secret) > proxy.MaxSecret {
			return &PolicyError{Field: errtext.Indexed("Network.Credentials", i) + ".Secret", Problem: fmt.Sprintf("has %d bytes", len(c.Secret)),
				Remedy: fmt.Sprintf("give one of %d to %d bytes: a shorter one cannot be told from other text", proxy.MinSecret, proxy.MaxSecret)}
		}
		if _, err := hostrules.Compile(c.Hosts, nil); err != nil {
			return hostError(errtext.Indexed("Network.Credentials", i)+".Hosts", "", err)
		}
	}
	for i, r := range n.Requests {
		if _, err := hostrules.Compile([]string{r.Host}, nil); err != nil {
			return inField(hostError("", "", err), errtext.Indexed("Network.Requests", i)+".Host")
		}
	}
	return nil
}

// validateReach refuses a credential, or a request rule, for what can never be
// allowed: most often a host that was forgotten, or misspelt, in one of two lists.
func validateReach(n Network) error {
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
		if isLocalhost(entry) {
			return &PolicyError{Field: field, Value: entry, Problem: "is the tool's own loopback, which is not reached through the proxy", Remedy: "leave it out: nobody sees what passes to a port of Network.Loopback"}
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

// guarded are the entries of the hosts that get secrets, or whose requests are
// judged.
func hostsWithSecrets(n Network) []string {
	var list []string
	for _, c := range n.Credentials {
		list = append(list, c.Hosts...)
	}
	for _, r := range n.Requests {
		list = append(list, r.Host)
	}
	return list
}

// datagrams are the rules of UDP.
func compileDatagrams(n Network) (hostrules.Datagrams, error) {
	return hostrules.CompileDatagrams(n.UDP, n.Deny, hostsWithSecrets(n))
}

// validateUDP comes after validateHosts, which has read every other list.
func validateUDP(n Network) error {
	_, err := compileDatagrams(n)
	if err != nil {
		bad := hostError("Network.UDP", "Network.Deny", err)
		switch {
		case errors.Is(err, hostrules.ErrNoPorts):
			bad.Problem, bad.Remedy = "names no port, and each port is a grant of its own", `write "example.com:123", or a range of ports`
		case errors.Is(err, hostrules.ErrBypass):
			bad.Problem = "opens ports at which hosts get secrets or have their requests judged, which HTTP/3 would go past"
			bad.Remedy = `give those hosts their ports ("api.example.com:443" in Credentials and Requests), and UDP others, or name single hosts`
		case errors.Is(err, hostrules.ErrMulticast):
			bad.Problem, bad.Remedy = "is for many hosts at once", "name one that answers"
		}
		return bad
	}
	if i := slices.IndexFunc(n.UDP, isLocalhost); i >= 0 {
		return &PolicyError{Field: errtext.Indexed("Network.UDP", i), Value: n.UDP[i], Problem: "is, for the tool, its own loopback, which no capture sees", Remedy: "leave it out: what the tool sends itself needs no rule"}
	}
	if len(n.UDP) > 0 && n.Capture == nil {
		return &PolicyError{Field: "Network.UDP", Value: n.UDP[0], Problem: "has nothing that could carry datagrams: the proxies do not", Remedy: "set Network.Capture"}
	}
	return nil
}

// hostError names the entry that package proxy has refused.
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

// inField says to which field an error belongs.
func inField(e *PolicyError, field string) *PolicyError {
	e.Field = field
	return e
}

// proxyConfig is what every run's gateway of this policy has in common.
func proxyConfig(n Network) (proxy.Config, error) {
	c := proxy.Config{Patience: n.Patience, Limits: proxy.Limits(n.Limits)}
	var err error
	if len(n.Hosts)+len(n.Deny) > 0 {
		if c.Rules, err = hostrules.Compile(n.Hosts, n.Deny); err != nil {
			return c, err // validate has found it before
		}
	}
	if c.Datagrams, err = compileDatagrams(n); err != nil {
		return c, err
	}
	if decide := n.Decide; decide != nil {
		c.Decide = func(ctx context.Context, r proxy.Request) proxy.Verdict {
			return proxy.Verdict(decide(ctx, policy.Request(r)))
		}
	}
	if observe := n.Observe; observe != nil {
		c.Observe = func(e proxy.Event) { observe(policy.Connection(e)) }
	}
	c.Lookup = n.Lookup
	if n.Authorities != "" {
		c.Authorities = []byte(n.Authorities)
	}
	for _, s := range n.Credentials {
		c.Credentials = append(c.Credentials, proxy.Credential(s))
	}
	for _, r := range n.Requests {
		c.Requests = append(c.Requests, proxy.RequestRule(r))
	}
	return c, nil
}

// isLocalhost reports whether an entry of Hosts names what is, for the tool, its own
// loopback.
func isLocalhost(entry string) bool {
	name, _, _ := strings.Cut(entry, ":")
	return strings.EqualFold(strings.TrimSuffix(name, "."), "localhost")
}
