package sandbox

import (
	"context"
	"net"

	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// What of a network macOS can be given, and why, is in profile_network.go.

var probed = Probe

// plug serves the tool's way to the network, once its process has been started.
func (r *run) plug() {
	o := r.out
	if o == nil {
		return
	}
	if o.outside[0] != nil {
		o.serveOutside()
	}
	if o.agent != nil {
		o.serveListener(o.agent, "ssh-agent", func(l net.Listener) error { return o.serveAgent(l, "ssh-agent", r.sandbox.world.ssh, agent.SSH) })
	}
}

func (r *run) dialInside(context.Context, uint16) (net.Conn, error) {
	return nil, &UnsupportedError{Bound: policy.BoundNetwork, What: "Network.Listen: servers inside cannot be reached", Reason: "macOS has no network namespaces", Remedy: "set Network.Host"}
}
