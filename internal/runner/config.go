package runner

import (
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ProxyConfig is the configuration that the proxies of all runs of this policy have in common.
func ProxyConfig(n policy.Network) (proxy.Config, error) {
	c := proxy.Config{
		Decide: n.Decide, Patience: n.Patience, Observe: n.Observe, Limits: n.Limits, Credentials: n.Credentials, Requests: n.Requests,
		Lookup: n.Lookup, Authorities: n.Authorities,
	}
	var err error
	if c.Rules, err = hostrules.Compile(n.Hosts, n.Deny); err != nil {
		return c, err // Policy.Validate has found it before
	}
	c.Datagrams, err = hostrules.CompileDatagrams(n.UDP, n.Deny, n.GuardedHosts())
	return c, err
}
