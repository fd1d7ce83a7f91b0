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
	if r.sandbox == nil || !slices.Contains(r.sandbox.Policy.Network.Listen, port) {
		return nil, &policy.PolicyError{Field: "port", Value: fmt.Sprint(port), Problem: "is not in Network.Listen", Remedy: "name it there"}
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
