package proxy

import (
	"crypto/x509"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// A Compiled is what the proxies of one sandbox have in common: the rules, the authority by which they intercept TLS,
// and the bundle that clients inside get to see. Making one takes milliseconds, so it serves every run of a sandbox;
// no run has the key.
type Compiled struct {
	rules     hostrules.Rules
	datagrams hostrules.Datagrams
	authority *authority     // nil: no TLS is intercepted
	roots     *x509.CertPool // whom the harness trusts; nil: the system's
	bundle    []byte         // nil: the system's will do
	store     func() ([]byte, error)
}

// Compile makes what the proxies of a Config need, by its Network and Roots.
func Compile(c Config) (*Compiled, error) {
	t := &Compiled{}
	var err error
	if t.rules, err = hostrules.Compile(c.Hosts, c.Deny); err != nil {
		return nil, err
	}
	guarded := c.GuardedHosts()
	if t.datagrams, err = hostrules.CompileDatagrams(c.UDP, c.Deny, guarded); err != nil {
		return nil, err
	}
	if len(guarded)+len(c.Authorities) == 0 {
		return t, nil
	}
	system, err := systemRoots()
	if err != nil {
		return nil, err
	}
	if t.bundle, err = t.admit(c, system); err != nil {
		return nil, err
	}
	if len(guarded) > 0 {
		if t.authority, err = newAuthority(time.Now(), guarded); err != nil {
			return nil, err
		}
		t.bundle = bundle(t.bundle, t.authority)
	}
	t.store = sync.OnceValues(func() ([]byte, error) { return store(t.bundle) })
	return t, nil
}

// Fresh reports whether the authority will hold for long enough to begin a run.
func (t *Compiled) Fresh(now time.Time) bool {
	return t.authority == nil || t.authority.cert.NotAfter.Sub(now) > authorityLife/2
}
