package runner

import (
	"context"
	"errors"
	"net"

	"github.com/holdfast-dev/holdfast/internal/proxy"
)

// A run of a policy without hosts has a proxy that denies everything in words, if the policy
// says so ([policy.Network] Explain) and the run has a network namespace. Most runs connect to nothing, so
// the gateway is made by the first connection.

// mostExplained is how many connections it takes at one time.
const mostExplained = 64

// serveExplanation serves the proxy's listener until the network is closed.
func (n *Network) serveExplanation(l net.Listener) error {
	defer context.AfterFunc(n.ctx, func() { l.Close() })()
	first, err := l.Accept()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	g, failed := n.makeGateway()
	if failed == nil {
		return g.Serve(&begunListener{l, first}, proxy.HTTP)
	}
	if first != nil {
		first.Close()
	}
	return failed
}

// makeGateway returns the run's gateway, and makes it if there is none.
func (n *Network) makeGateway() (*proxy.Proxy, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	if n.gateway == nil {
		g, err := n.of.newGateway("", n.observer, n)
		if err != nil {
			return nil, err
		}
		n.gateway = g
	}
	return n.gateway, nil
}

// gatewayMade is the run's gateway; nil: there is none, or none yet.
func (n *Network) gatewayMade() *proxy.Proxy {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gateway
}

// A begunListener is one whose first client was accepted already; nil: it was not.
type begunListener struct {
	net.Listener
	first net.Conn
}

// Accept returns the first client and then the others. One goroutine calls it.
func (l *begunListener) Accept() (net.Conn, error) {
	if c := l.first; c != nil {
		l.first = nil
		return c, nil
	}
	return l.Listener.Accept()
}
