package main

import (
	"context"
	"net"
	"net/netip"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/capture"
)

const networkHarness = "network-harness"

// benchHost is what the server is called inside.
const benchHost = "bench.example"

// beNetworkHarness runs a client in a sandbox that may reach the server. Its
// arguments are "proxy" or "capture", and the server.
func beNetworkHarness(args []string) error {
	kind, server := args[0], args[1]
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(server)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := sandbox.ReadOnly(dir)
	p.Files.Read = append(p.Files.Read, self)
	p.Network.Hosts = []string{benchHost, server}
	p.Network.Limits.Connections = 2 * manyIdle
	p.Network.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	words := []string{networkClient, net.JoinHostPort(benchHost, port), proxyOfEnvironment}
	if kind == "capture" {
		p.Network.Capture = capture.Netstack
		words = words[:2]
	}
	s, err := sandbox.New(p)
	if err != nil {
		return err
	}
	cmd := s.Command(self, words...)
	cmd.Dir = dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
