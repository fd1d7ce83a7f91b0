package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/compile"
)

// dialInside connects to a port of the tool's loopback. What it returns ends with
// the run at the latest.
func (r *run) dialInside(ctx context.Context, port uint16) (net.Conn, error) {
	if r.sandbox == nil || !slices.Contains(r.sandbox.policy.Network.Listen, port) {
		return nil, &PolicyError{Field: "port", Value: fmt.Sprint(port), Problem: "is not in Network.Listen", Remedy: "name it there"}
	}
	if !r.isWatching() {
		return nil, fmt.Errorf("sandbox: the command has not been started: %w", os.ErrInvalid)
	}
	select {
	case <-r.decided:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o, err := r.outlet()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	dial, over := o.dial, o.closed
	o.mu.Unlock()
	if over || dial == nil {
		return nil, fmt.Errorf("sandbox: the run is over: %w", os.ErrClosed)
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
