package runner

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// DialInside connects to a port of the tool's loopback. What it returns ends with
// the run at the latest.
func (r *Run) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	if err := r.sandbox.mayDial(port); err != nil {
		return nil, err
	}
	if !r.isWatching() {
		return nil, fmt.Errorf("sandbox: the command has not been started: %w", os.ErrInvalid)
	}
	select {
	case <-r.decided:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n, err := r.network()
	if err != nil {
		return nil, err
	}
	return n.DialInside(ctx, port)
}

// mayDial refuses a port that the policy does not name; s may be nil.
func (s *Sandbox) mayDial(port uint16) error {
	if s == nil || !slices.Contains(s.Policy.Network.Listen, port) {
		return &policy.PolicyError{Field: "port", Value: fmt.Sprint(port), Problem: "is not in Network.Listen", Remedy: "name it there"}
	}
	return nil
}
