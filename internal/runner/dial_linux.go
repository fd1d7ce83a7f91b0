package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// DialInside connects to a port of the tool's loopback. What it returns ends with
// the run at the latest.
func (n *Network) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	n.mu.Lock()
	dial, over := n.dial, n.closed
	n.mu.Unlock()
	if over || dial == nil && n.inside {
		return nil, fmt.Errorf("sandbox: the run is over: %w", os.ErrClosed)
	}
	if dial == nil {
		return nil, &policy.UnsupportedError{Bound: policy.BoundNetwork, What: "servers inside cannot be reached by DialInside",
			Reason: "the command has no network namespace of its own", Remedy: "see Probe's Namespaces; with Network.Host dial this machine's loopback"}
	}
	c, err := dial(ctx, netip.AddrPortFrom(compile.Loopback4, port))
	if errors.Is(err, syscall.ECONNREFUSED) { // a server at "localhost" may have taken that for ::1 alone
		if six, errSix := dial(ctx, netip.AddrPortFrom(netip.IPv6Loopback(), port)); errSix == nil {
			return six, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return c, nil
}
