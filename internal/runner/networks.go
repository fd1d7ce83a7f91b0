package runner

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
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
	Scope   string  // of placeholders, set before the first run; see proxy.Config

	policy   policy.Network             // without the secrets of Credentials
	serves   bool                       // a run of the policy has a gateway
	secrets  func() []policy.Credential // behind a function, which no printer follows
	mu       sync.Mutex                 // held while compiled is read or renewed
	compiled *proxy.Compiled
	answers  callback.Memory // of Decide

	explaining sync.Once
	explained  []string // the variables of a run whose proxy explains (Network.Explain): the same for each
}

// NewNetworks makes what every run's gateway has in common, and one gateway to see that
// it can be made. It takes the secrets out of n: fmt calls no method, and so none that
// would keep them out, of a value in a field that is not exported.
func NewNetworks(n *policy.Network) (*Networks, error) {
	held := slices.Clone(n.Credentials)
	for i := range n.Credentials {
		n.Credentials[i].Secret = ""
	}
	s := &Networks{Scope: rand.Text(), policy: *n, secrets: func() []policy.Credential { return held }}
	if s.serves = n.Proxied() || len(n.Loopback) > 0; !s.serves {
		return s, nil
	}
	g, err := s.newGateway("", nil, nil)
	if err != nil {
		return nil, uncarried(err)
	}
	return s, g.Close()
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

// newGateway makes a run's gateway, which the observer is told of. Who connects to it has to say key, if there is one.
// n is the run, if it has a network namespace; else it is nil.
func (s *Networks) newGateway(key string, o *observer, n *Network) (*proxy.Proxy, error) {
	c := proxy.Config{Network: s.policy, Key: key, Dial: s.Outside.Dial, DialUDP: s.Outside.DialUDP, Roots: s.Outside.Roots, Memory: &s.answers, Scope: s.Scope}
	c.Credentials = s.secrets()
	if n != nil {
		c.Sockets = n.socketTables
		c.Inside, c.Hostname = n.dialOwn, n.wiring.Hostname
		if c.Hostname == "" {
			c.Hostname, _ = os.Hostname() // the namespace of its names is a copy of the harness's
		}
	}
	if o != nil && o.queue != nil {
		c.Denied, c.Asked = func(e policy.Connection) { o.denied(ViolationOf(e)) }, o.asked
	}
	if !s.serves && c.Limits.Connections == 0 {
		c.Limits.Connections = mostExplained
	}
	if s.Outside.Lookup != nil {
		c.Lookup = s.Outside.Lookup
	}
	var err error
	if c.Compiled, err = s.compile(c); err != nil {
		return nil, err
	}
	return proxy.New(c)
}

// compile returns what the gateways of all runs have in common: the sandbox's authority, or another when that grows old.
func (s *Networks) compile(c proxy.Config) (*proxy.Compiled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiled != nil && s.compiled.Fresh(time.Now()) {
		return s.compiled, nil
	}
	made, err := proxy.Compile(c)
	if err == nil {
		s.compiled = made
	}
	return made, err
}
