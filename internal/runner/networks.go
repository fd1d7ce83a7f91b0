package runner

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Outside is what this host has that a policy's network leads to.
type Outside struct {
	SSHAgent, GPGAgent string // the agents' sockets

	// A test's own Internet.
	Lookup  func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	DialUDP func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Roots   *x509.CertPool
}

// Networks is what the networks of all runs of one sandbox have in common.
type Networks struct {
	Outside Outside // set before the first run

	policy  policy.Network             // without the secrets of Credentials
	secrets func() []policy.Credential // behind a function, which no printer follows
	mu      sync.Mutex                 // held while config.Trust is read or renewed
	config  proxy.Config               // without Credentials
}

// NewNetworks makes what every run's gateway has in common, and one gateway to see that
// it can be made. It takes the secrets out of n: fmt calls no method, and so none that
// would keep them out, of a value in a field that is not exported.
func NewNetworks(n *policy.Network) (*Networks, error) {
	c, err := ProxyConfig(*n)
	if err != nil {
		return nil, err
	}
	held := slices.Clone(n.Credentials)
	c.Credentials = nil
	for i := range n.Credentials {
		n.Credentials[i].Secret = ""
	}
	s := &Networks{policy: *n, config: c, secrets: func() []policy.Credential { return held }}
	if !Serves(*n) {
		return s, nil
	}
	if err := s.renewTrust(); err != nil {
		return nil, uncarried(err)
	}
	g, err := proxy.New(s.unsealed())
	if err != nil {
		return nil, uncarried(err)
	}
	return s, g.Close()
}

// unsealed is the configuration with the secrets, for who makes something of it at once.
func (s *Networks) unsealed() proxy.Config {
	c := s.config
	c.Credentials = s.secrets()
	return c
}

// uncarried names the field that package proxy cannot carry out.
func uncarried(err error) error {
	bad := &policy.PolicyError{Field: "Network", Problem: "cannot be carried out", Err: err}
	if e := (*proxy.ConfigError)(nil); errors.As(err, &e) {
		field := map[string]string{"credential": "Network.Credentials", "request rule": "Network.Requests"}[e.List]
		bad.Field, bad.Value, bad.Err = errtext.Indexed(field, e.Index), e.Name, e.Err
	}
	return bad
}

// Serves reports whether a run of such a policy has a gateway.
func Serves(n policy.Network) bool { return n.Proxied() || len(n.Loopback) > 0 }

// renewTrust makes the sandbox's authority, or another when that grows old.
func (s *Networks) renewTrust() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.config.Trust; t != nil && t.Fresh(time.Now()) {
		return nil
	}
	c := s.unsealed()
	c.Roots = s.Outside.Roots
	t, err := proxy.NewTrust(c)
	if err == nil {
		s.config.Trust = t
	}
	return err
}

// newGateway makes a run's gateway. Who connects to it has to say key, if there
// is one.
func (s *Networks) newGateway(key string) (*proxy.Proxy, error) {
	if err := s.renewTrust(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.unsealed()
	s.mu.Unlock()
	c.Key = key
	if !Serves(s.policy) && c.Limits.Connections == 0 {
		c.Limits.Connections = mostExplained
	}
	c.Dial, c.DialUDP, c.Roots = s.Outside.Dial, s.Outside.DialUDP, s.Outside.Roots
	if s.Outside.Lookup != nil {
		c.Lookup = s.Outside.Lookup
	}
	return proxy.New(c)
}
