package sandbox

import (
	"context"
	"net"
)

// On macOS there is no network but the harness's own, or none.

var probed = Probe

// lacksNetwork refuses what takes proxies, sockets of the host or agents.
func (n Network) lacksNetwork() error {
	field := n.wants()
	switch {
	case field != "":
	case len(n.Unix) > 0:
		field = "Unix"
	case n.agents():
		field = "SSHAgent, GPGAgent"
	default:
		return nil
	}
	return unsupportedNetwork(field)
}

func unsupportedNetwork(field string) error {
	return &UnsupportedError{Bound: BoundNetwork, What: "what the policy says in Network." + field, Reason: "the engine for macOS serves no proxies", Remedy: "leave the network closed, or set Network.Host"}
}

func (r *run) dialInside(context.Context, uint16) (net.Conn, error) {
	return nil, unsupportedNetwork("Listen")
}
