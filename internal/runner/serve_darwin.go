package runner

import (
	"net"

	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
)

// Serve serves the tool's way to the network, once its process has been started. What of a
// network macOS can be given, and why, is in internal/darwin.
func (n *Network) Serve() {
	if n.outside[0] != nil {
		n.serveOutside()
	}
	if n.agent != nil {
		n.serveListener(n.agent, "ssh-agent", func(l net.Listener) error { return n.serveAgent(l, "ssh-agent", n.of.Outside.SSHAgent, agent.SSH) })
	}
}
