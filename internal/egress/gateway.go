package egress

import (
	"context"
	"errors"
	"net"
)

// A Gateway is the way out of one sandbox. Its methods may be called at once.
type Gateway struct {
	cfg Config
}

// ErrClosed is returned when the gateway has ended.
var ErrClosed = errors.New("gateway is closed")

// A Refusal is the error of a target that may not be reached.
type Refusal struct {
	Host string
	Port uint16
	Rule string // the entry that decided; "": none did
	Why  string
}

// New makes a gateway. It listens on nothing; Serve does with what it is given.
// The caller ends it with Close.
func New(cfg Config) (*Gateway, error) { return nil, errors.ErrUnsupported }

// Serve answers the clients of a listener until that is closed or the gateway
// ends. It closes the listener, and returns nil when the gateway has ended.
func (g *Gateway) Serve(l net.Listener, p Protocol) error { return errors.ErrUnsupported }

// Allowed says what the rules know of a target. It has no side effect: nobody is
// asked, nothing counted. Port 0 asks for any port.
func (g *Gateway) Allowed(h Host, port uint16) Decision { return g.cfg.Rules.Target(h, port) }

// Tunnel decides about a target, connects to it and carries the bytes of a
// client's connection there and back, until both have ended. It closes conn. The
// error of a denial is a [*Refusal]. It is Open followed by Carry.
func (g *Gateway) Tunnel(ctx context.Context, conn net.Conn, t Target) error {
	return errors.ErrUnsupported
}

// An Upstream is a connection to a target that was decided, checked and dialled,
// and has carried nothing yet.
type Upstream struct {
	Target   Target
	Decision Decision
	conn     net.Conn
}

// Open decides about a target and connects to it: for whoever has to tell a client
// how that went before the client says more. The Upstream is ended by Carry or
// Close. A denial has been told as an event when Open returns it.
func (g *Gateway) Open(ctx context.Context, t Target) (*Upstream, error) {
	return nil, errors.ErrUnsupported
}

// Carry is the second half of Tunnel. It closes both connections.
func (u *Upstream) Carry(client net.Conn) error { return errors.ErrUnsupported }

// Close ends an Upstream that is not going to be carried.
func (u *Upstream) Close() error { return errors.ErrUnsupported }

// Forward connects every client of a listener to one address of the host, which
// the policy has granted: no rule is asked. It returns as Serve does.
func (g *Gateway) Forward(l net.Listener, to string) error { return errors.ErrUnsupported }

// Close ends every connection, listener and question, and returns when every
// goroutine of the gateway has ended.
func (g *Gateway) Close() error { return nil }

// Summary returns what the gateway has done so far.
func (g *Gateway) Summary() Summary { return Summary{} }

// Bundle returns the certificates that a client inside should trust, in PEM: the
// system's roots and the sandbox's own authority. Nil: no TLS is terminated.
func (g *Gateway) Bundle() []byte { return nil }

// Placeholders returns what stands in the tool's environment for each
// credential: variable to placeholder.
func (g *Gateway) Placeholders() map[string]string { return nil }
