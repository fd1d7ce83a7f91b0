package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"time"
)

const (
	presetPatience = 30 * time.Second
	headerTime     = 30 * time.Second // for a request's header, a handshake, a ClientHello
	idleTime       = 10 * time.Minute // without a byte in either direction
	keptTime       = 2 * time.Minute  // of a client's connection between two requests
	endingTime     = 5 * time.Second  // for what was closed to end
)

// A Gateway is the way out of one sandbox. Its methods may be called at once.
type Gateway struct {
	cfg    Config
	ctx    context.Context // ends with the gateway
	cancel context.CancelFunc
	life
	*journal

	asks      asks
	lookingUp calls
	declining calls
	names     names
	sightings sightings
	silence   func(port uint16) time.Duration // how long a flow of datagrams may be without one
	meter     meter

	server    *http.Server
	idle      time.Duration          // after which an exchange in which nothing moves is ended
	ending    time.Duration          // for which Close waits
	plain     *http.Transport        // of requests in clear text
	heads     budget                 // of all headers
	forwarder *httputil.ReverseProxy // of all requests

	credentials credentials
	requests    requestRules
	redactor    *redactor
	trust       *Trust
	// screen judges a request on its way out and may change it: r is what
	// will be sent, its URL the real one. The error is a *Refusal.
	screen func(r *http.Request, t Target) error
}

// Allowed says what the rules know of a target. It has no side effect: nobody is
// asked, nothing counted. Port 0 asks for any port.
func (g *Gateway) Allowed(h Host, port uint16) Decision { return g.cfg.Rules.Target(h, port) }

// AllowedDatagrams is Allowed for datagrams.
func (g *Gateway) AllowedDatagrams(h Host, port uint16) Decision {
	return g.cfg.Datagrams.Target(h, port)
}

// Deny notes something that was refused on the tool's behalf elsewhere: a datagram
// by a capture, a message by an agent's filter.
func (g *Gateway) Deny(e Event) {
	e.Allowed = false
	g.add(e)
}

// Summary returns what the gateway has done so far.
func (g *Gateway) Summary() Summary {
	s := g.summary()
	s.Sent, s.Received = g.meter.sent.Load(), g.meter.received.Load()
	return s
}

// String keeps what a gateway holds, and what it is doing, out of whatever prints one.
func (g *Gateway) String() string { return "network proxy" }

// Format does the same for every verb.
func (g *Gateway) Format(f fmt.State, _ rune) { fmt.Fprint(f, g.String()) }

// legible reports whether the requests to a target are judged, so that what cannot be read
// is refused.
func (g *Gateway) legible(t Target) bool { return len(g.requests.of(t.Host, t.Port)) > 0 }

// terminates reports whether the TLS to a target is terminated.
func (g *Gateway) terminates(t Target) bool {
	return g.legible(t) || len(g.credentials.of(t.Host, t.Port)) > 0
}

// admit takes a client's connection in, if Limits has room for it; t is what a
// refusal says of it.
func (g *Gateway) admit(conn net.Conn, t Target) (*tracked, error) {
	c, full := g.life.admit(conn, g.cfg.Limits.Connections)
	switch {
	case full:
		return nil, t.limited(limitConnections, "", fmt.Sprintf("the policy's limit on connections is reached: %d are open", g.cfg.Limits.Connections))
	case c == nil:
		return nil, ErrClosed
	}
	return c, nil
}

// known counts a name that is about to be looked up below the entry that allows it:
// a wildcard, or [byDecide]. The error is a *Refusal.
func (g *Gateway) known(t Target, entry string) error {
	if t.Host.addr.IsValid() || entry != byDecide && !wide(entry) || g.names.admit(entry, t.Host.name) {
		return nil
	}
	below := fmt.Sprintf("below %q", entry)
	if entry == byDecide {
		below = "that Decide alone allowed"
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
