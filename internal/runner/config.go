package runner

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ProxyConfig is the configuration that the proxies of all runs of this policy have in common.
func ProxyConfig(n policy.Network) (proxy.Config, error) {
	c := proxy.Config{Patience: n.Patience, Limits: proxy.Limits(n.Limits)}
	var err error
	if len(n.Hosts)+len(n.Deny) > 0 {
		if c.Rules, err = hostrules.Compile(n.Hosts, n.Deny); err != nil {
			return c, err // Policy.Validate has found it before
		}
	}
	if c.Datagrams, err = hostrules.CompileDatagrams(n.UDP, n.Deny, n.GuardedHosts()); err != nil {
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
