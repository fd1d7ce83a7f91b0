package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/internal/proxy/redact"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

const (
	defaultPatience  = 30 * time.Second
	headerTimeout    = 30 * time.Second // for a request's header, a handshake, a ClientHello
	idleTimeout      = 10 * time.Minute // without a byte in either direction
	keepAliveTimeout = 2 * time.Minute  // of a client's connection between two requests
	closeTimeout     = 5 * time.Second  // for what was closed to end
)

// A Proxy is the way out of one sandbox. Its methods may be called at once.
type Proxy struct {
	cfg    Config
	ctx    context.Context // ends with the proxy
	cancel context.CancelFunc
	tracker
	*eventLog

	asker      callback.Asker
	lookups    callback.Limit
	rejections callback.Limit
	names      nameCounter
	udpTimeout func(port uint16) time.Duration // how long a flow of datagrams may be without one
	meter      trafficMeter

	server       *http.Server
	idleTimeout  time.Duration          // after which a request during which nothing moves is ended
	closeTimeout time.Duration          // for which Close waits
	transport    http.RoundTripper      // of requests in clear text
	headerBudget headerBudget           // of all headers
	reverseProxy *httputil.ReverseProxy // of all requests

	credentials credentials
	requests    requestRules
	redactor    *redact.Redactor
	compiled    *Compiled
	rules       atomic.Pointer[hostrules.Rules] // compiled.rules, until SetRules
	setting     sync.Mutex                      // held by SetRules
	proxies     sync.Map                        // addresses of the listeners whose clients name their targets
	// screen judges a request on its way out and may change it: r is what
	// will be sent, its URL the real one. The error is a *Refusal.
	judgeRequest func(r *http.Request, t Target) error
}

// Allowed says what the rules know of a target. It has no side effect: Decide is
// not asked, nothing is counted. Port 0 asks for any port.
func (g *Proxy) Allowed(h hostrules.Host, port uint16) hostrules.Decision {
	return g.rules.Load().Target(h, port)
}

// AllowedDatagrams is Allowed for datagrams, which go to no host that the policy's Hosts allowed and SetRules has taken away.
func (g *Proxy) AllowedDatagrams(h hostrules.Host, port uint16) hostrules.Decision {
	d, now := g.compiled.datagrams.Target(h, port), g.rules.Load()
	for _, p := range [...]uint16{0, port} {
		was, is := g.compiled.rules.Target(h, p), now.Target(h, p)
		if d.Outcome == hostrules.Allow && was.Outcome == hostrules.Allow && is.Outcome != hostrules.Allow {
			d = is
		}
	}
	return d
}

// Deny notes something that was refused on the tool's behalf elsewhere: a datagram
// by a capture, a message by an agent's filter.
func (g *Proxy) Deny(e policy.Connection) {
	e.Allowed = false
	g.add(e)
}

// Summary returns what the proxy has done so far.
func (g *Proxy) Summary() Summary {
	s := g.summary()
	s.Sent, s.Received = g.meter.sent.Load(), g.meter.received.Load()
	return s
}

// String keeps what a proxy holds, and what it is doing, out of whatever prints one.
func (g *Proxy) String() string { return "network proxy" }

// Format does the same for every verb.
func (g *Proxy) Format(f fmt.State, _ rune) { fmt.Fprint(f, g.String()) }

// hasRequestRule reports whether the requests to a target are judged, so that what cannot be read
// is refused.
func (g *Proxy) hasRequestRule(t Target) bool { return len(g.requests.of(t.Host, t.Port)) > 0 }

// interceptsTLS reports whether the TLS to a target is intercepted.
func (g *Proxy) interceptsTLS(t Target) bool {
	return g.hasRequestRule(t) || len(g.credentials.of(t.Host, t.Port)) > 0
}

// admit takes a client's connection in, if Limits has room for it; t is what a
// refusal says of it.
func (g *Proxy) admit(conn net.Conn, t Target) (*trackedConn, error) {
	c, full := g.tracker.admit(conn, g.cfg.Limits.Connections)
	switch {
	case full:
		return nil, t.limited(limitConnections, "", fmt.Sprintf("the policy's limit on connections is reached: %d are open", g.cfg.Limits.Connections))
	case c == nil:
		return nil, ErrClosed
	}
	return c, nil
}

// countName counts a name that is about to be looked up below the entry that allows it:
// a wildcard, or [callback.ByDecide]. The error is a *Refusal.
func (g *Proxy) countName(t Target, entry string) error {
	below := fmt.Sprintf("below %q", entry)
	if callback.IsByDecide(entry) {
		entry, below = callback.ByDecide, "that Decide alone allowed"
	} else if !strings.HasPrefix(entry, "*") {
		return nil
	}
	if t.Host.IsAddr() || g.names.admit(entry, t.Host.String()) {
		return nil
	}
	return t.limited(limitNames, entry, fmt.Sprintf("%d names were asked for %s, which is the policy's limit", g.names.most, below))
}

// address is what an event says of where a connection went.
func address(to netip.AddrPort) string {
	if !to.IsValid() {
		return ""
	}
	return to.String()
}
