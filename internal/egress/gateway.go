package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
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
	cfg                 Config
	ctx                 context.Context // ends with the gateway
	cancel              context.CancelFunc
	asks                asks
	deciding, lookingUp calls
	declining           calls
	names               names
	sightings           sightings
	silence             func(port uint16) time.Duration // how long a flow of datagrams may be without one
	meter               meter
	journal             *journal

	mu      sync.Mutex
	closed  bool
	open    map[io.Closer]struct{} // what Close closes
	clients int                    // connections of clients that are open
	running sync.WaitGroup

	server    *http.Server
	idle      time.Duration // after which an exchange in which nothing moves is ended
	ending    time.Duration // for which Close waits
	plain     carrier       // of requests in clear text
	heads     budget        // of all headers
	forwarder *httputil.ReverseProxy

	// terminates reports whether the TLS of a target is to be terminated, and
	// terminate does it: client gives the ClientHello once more. It closes both
	// connections. Nil: none is.
	terminates func(Target) bool
	terminate  func(ctx context.Context, client net.Conn, hello *tls.ClientHelloInfo, u *Upstream) error
	// legible reports whether bytes that are neither plain HTTP nor TLS that is
	// terminated are to be refused to a target. Nil: they are not.
	legible func(Target) bool
	// screen judges a request on its way out and may change it: r is what
	// will be sent, its URL the real one. The error is a *Refusal. Nil: none is
	// judged.
	screen func(r *http.Request, t Target) error
	border border // what these need (terminate.go)
}

// ErrClosed is returned when the gateway has ended.
var ErrClosed = errors.New("gateway is closed")

// New makes a gateway. It listens on nothing; Serve does with what it is given.
// The caller ends it with Close.
func New(cfg Config) (*Gateway, error) {
	g := &Gateway{cfg: cfg, open: map[io.Closer]struct{}{}, idle: idleTime, ending: endingTime, silence: silence}
	g.preset()
	if err := g.seams(); err != nil {
		return nil, err
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.asks.open = map[Request]*question{}
	g.names.seen = map[string]map[string]struct{}{}
	g.journal = newJournal(cfg.Observe)
	g.plain = newCarrier(g.dialPlain)
	g.forwarder = newForwarder(g)
	g.server = g.newServer()
	return g, nil
}

// preset puts in what the zero values of a Config mean.
func (g *Gateway) preset() {
	c := &g.cfg
	if c.Patience <= 0 {
		c.Patience = presetPatience
	}
	if c.Lookup == nil {
		c.Lookup = lookupAbsolute
	}
	if c.Dial == nil {
		c.Dial = dialTCP
	}
	if c.DialUDP == nil {
		c.DialUDP = dialUDP
	}
	if c.Route == nil {
		c.Route = routeOf
	}
	if c.Limits.Connections <= 0 {
		c.Limits.Connections = min(presetConnections, max(mostFiles()/8, 1))
	}
	if g.names.most = c.Limits.Names; g.names.most <= 0 {
		g.names.most = presetNames
	}
	g.meter.most = max(c.Limits.Bytes, 0)
	if c.Limits.Rate > 0 {
		g.meter.pace = newPace(c.Limits.Rate)
	}
}

// Allowed says what the rules know of a target. It has no side effect: nobody is
// asked, nothing counted. Port 0 asks for any port.
func (g *Gateway) Allowed(h Host, port uint16) Decision { return g.cfg.Rules.Target(h, port) }

// AllowedDatagrams is Allowed for datagrams.
func (g *Gateway) AllowedDatagrams(h Host, port uint16) Decision {
	return g.cfg.Datagrams.Target(h, port)
}

// Summary returns what the gateway has done so far.
func (g *Gateway) Summary() Summary {
	s := g.journal.summary()
	s.Sent, s.Received = g.meter.sent.Load(), g.meter.received.Load()
	return s
}

// String keeps what a gateway holds, and what it is doing, out of whatever prints one.
func (g *Gateway) String() string { return "egress gateway" }

// Format does the same for every verb.
func (g *Gateway) Format(f fmt.State, _ rune) { fmt.Fprint(f, g.String()) }

// Close ends every connection, listener and question, and returns when every
// goroutine of the gateway has ended, or some seconds later whatever a peer, a Dial of
// the policy's or a library does: the Summary says so then. It waits for an Observe no
// longer than Patience, and not for a Decide that does not heed its context.
func (g *Gateway) Close() error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	open := g.open
	g.open = map[io.Closer]struct{}{}
	g.mu.Unlock()
	g.cancel()
	for c := range open {
		go c.Close() // each by itself: one that does not return leaves no other open
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if !already {
			g.server.Close()
			g.plain.t.CloseIdleConnections()
		}
		g.running.Wait()
	}()
	late := time.NewTimer(g.ending)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		g.journal.stuck()
	}
	g.journal.end(g.cfg.Patience)
	return nil
}

// spawn runs f in a goroutine that Close waits for; false: the gateway has ended.
func (g *Gateway) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Go(f)
	return true
}

// enter is spawn for a goroutine that is there already; leave ends it.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Add(1)
	return true
}

func (g *Gateway) leave() { g.running.Done() }

// track has Close close c; false: the gateway has ended.
func (g *Gateway) track(c io.Closer) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.open[c] = struct{}{}
	}
	return !g.closed
}

func (g *Gateway) untrack(c io.Closer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
}

// A tracked connection is closed with the gateway.
type tracked struct {
	net.Conn
	g      *Gateway
	client bool // counts among the clients' connections
	once   sync.Once
}

func (c *tracked) Close() error {
	c.once.Do(func() {
		c.g.mu.Lock()
		defer c.g.mu.Unlock()
		delete(c.g.open, c)
		if c.client {
			c.g.clients--
		}
	})
	return c.Conn.Close()
}

func (c *tracked) unwrap() net.Conn { return c.Conn }

// bare is the connection below what this package has wrapped around it.
func bare(c net.Conn) net.Conn {
	for {
		w, ok := c.(interface{ unwrap() net.Conn })
		if !ok {
			return c
		}
		c = w.unwrap()
	}
}

// admit takes a client's connection in, if Limits has room for it; t is what a
// refusal says of it.
func (g *Gateway) admit(conn net.Conn, t Target) (*tracked, error) {
	c := &tracked{Conn: conn, g: g, client: true}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, ErrClosed
	case g.clients >= g.cfg.Limits.Connections:
		return nil, g.crowded(t)
	}
	g.clients++
	g.open[c] = struct{}{}
	return c, nil
}

// address is what an event says of where a connection went.
func address(to netip.AddrPort) string {
	if !to.IsValid() {
		return ""
	}
	return to.String()
}
