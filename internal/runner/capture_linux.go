package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// CaptureGate is the network as a capture sees it.
func (n *Network) CaptureGate() policy.CaptureGate {
	g, decides := n.gateway, n.of.policy.Decide != nil
	return policy.CaptureGate{
		Address: compile.CaptureDevice.Addr, MTU: compile.CaptureDevice.MTU,
		Allowed: func(host string, port uint16) bool {
			h, err := hostrules.ParseHost(host)
			if err != nil {
				return false
			}
			d := g.Allowed(h, port)
			return d.Outcome == hostrules.Allow || d.Outcome == hostrules.Unknown && decides ||
				port == 0 && g.AllowedDatagrams(h, 0).Outcome == hostrules.Allow
		},
		Datagrams: func(host string, port uint16) bool {
			h, err := hostrules.ParseHost(host)
			return err == nil && g.AllowedDatagrams(h, port).Outcome == hostrules.Allow
		},
		Tunnel: func(ctx context.Context, conn net.Conn, host string, port uint16, protocol string) error {
			h, err := hostrules.ParseHost(host)
			if err != nil {
				conn.Close()
				return fmt.Errorf("sandbox: %w", err)
			}
			t := proxy.Target{Host: h, Port: port, Protocol: protocol}
			if protocol == "udp" {
				return g.CarryUDP(ctx, conn, t)
			}
			return g.CarryTCP(ctx, conn, t)
		},
		Denied: func(protocol, host string, port uint16, why string) {
			e := policy.Connection{Time: time.Now(), Protocol: protocol, Host: host, Port: port, Reason: why}
			if d := n.denial(host, port); d.Why == why {
				e.Rule = d.Rule
			}
			if protocol == "udp" {
				if d := n.datagramDenial(host, port); d.Why != "" { // which says more
					e.Rule, e.Reason = d.Rule, d.Why
				}
			}
			g.Deny(e)
		},
		Why: func(host string, port uint16) string { return n.denial(host, port).Why },
	}
}

// denial says which rule denies a host, if one does, and why it is denied otherwise.
func (n *Network) denial(host string, port uint16) hostrules.Decision {
	h, err := hostrules.ParseHost(host)
	if err != nil {
		return hostrules.Decision{Why: err.Error()}
	}
	d := n.gateway.Allowed(h, port)
	if d.Outcome == hostrules.Unknown {
		d.Why = "no rule allows it"
	}
	return d
}

// datagramDenial says why the policy grants no datagram to a host, if it is that. An
// address of the device's network belongs to no host, and no policy can grant one to it.
func (n *Network) datagramDenial(host string, port uint16) hostrules.Decision {
	h, err := hostrules.ParseHost(host)
	if a, no := netip.ParseAddr(host); err != nil || no == nil && compile.CaptureDevice.Addr.Contains(a) {
		return hostrules.Decision{}
	}
	d := n.gateway.AllowedDatagrams(h, port)
	if d.Outcome == hostrules.Unknown {
		entry := net.JoinHostPort(h.String(), strconv.Itoa(int(port)))
		if _, err := hostrules.CompileDatagrams([]string{entry}, nil, n.of.policy.GuardedHosts()); errors.Is(err, hostrules.ErrBypass) {
			d.Why = "the policy judges requests at this port, and a datagram's it could not see"
		}
	}
	return d
}
