package sandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// world is what this host has that a policy's network leads to.
type world struct {
	ssh, gpg string // the agents' sockets

	configs []string // a test's own, for proxy.SystemSSHConfigs

	// A test's own Internet.
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	dial   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	send   func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // connects for datagrams
	roots  *x509.CertPool
}

// openGate makes what every run's gateway has in common, and one gateway to see
// that it can be made.
func (s *Sandbox) openGate() (err error) {
	if s.gate, err = proxyConfig(s.policy.Network); err != nil {
		return err
	}
	s.seal()
	if !servesProxy(s.policy.Network) {
		return nil
	}
	if err := s.renewTrust(); err != nil {
		return uncarried(err)
	}
	g, err := proxy.New(s.unsealed())
	if err != nil {
		return uncarried(err)
	}
	return g.Close()
}

// seal takes the secrets out of what a sandbox's fields hold: fmt calls no method,
// and so none that would keep them out, of a value in a field that is not exported.
func (s *Sandbox) seal() {
	held := s.gate.Credentials
	s.gate.Credentials = nil
	s.secrets = func() []proxy.Credential { return held }
	for i := range s.policy.Network.Credentials {
		s.policy.Network.Credentials[i].Secret = ""
	}
}

// unsealed is the gate with the secrets, for who makes something of it at once.
func (s *Sandbox) unsealed() proxy.Config {
	c := s.gate
	c.Credentials = s.secrets()
	return c
}

// uncarried names the field that package proxy cannot carry out.
func uncarried(err error) error {
	bad := &PolicyError{Field: "Network", Problem: "cannot be carried out", Err: err}
	if e := (*proxy.ConfigError)(nil); errors.As(err, &e) {
		field := map[string]string{"credential": "Network.Credentials", "request rule": "Network.Requests"}[e.List]
		bad.Field, bad.Value, bad.Err = errtext.Indexed(field, e.Index), e.Name, e.Err
	}
	return bad
}

// served reports whether a run has a gateway.
func servesProxy(n Network) bool { return n.Proxied() || len(n.Loopback) > 0 }

// renewTrust makes the sandbox's authority, or another when that grows old.
func (s *Sandbox) renewTrust() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.gate.Trust; t != nil && t.Fresh(time.Now()) {
		return nil
	}
	c := s.unsealed()
	c.Roots = s.world.roots
	t, err := proxy.NewTrust(c)
	if err == nil {
		s.gate.Trust = t
	}
	return err
}

// newGateway makes a run's gateway. Who connects to it has to say key, if there
// is one.
func (s *Sandbox) newGateway(key string) (*proxy.Proxy, error) {
	if err := s.renewTrust(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.unsealed()
	s.mu.Unlock()
	c.Key = key
	c.Dial, c.DialUDP, c.Roots = s.world.dial, s.world.send, s.world.roots
	if s.world.lookup != nil {
		c.Lookup = s.world.lookup
	}
	return proxy.New(c)
}
