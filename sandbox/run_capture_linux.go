package sandbox

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// mostDenied bounds what a report lists.
const mostDenied = 1000

// captureGate is the outlet as a capture sees it.
func (o *outlet) captureGate(n Network) CaptureGate {
	g := o.gateway
	return CaptureGate{
		Address: captureDevice.Addr, MTU: captureDevice.MTU,
		Allowed: func(host string, port uint16) bool {
			h, err := egress.ParseHost(host)
			if err != nil {
				return false
			}
			d := g.Allowed(h, port)
			return d.Outcome == egress.Allow || d.Outcome == egress.Unknown && n.Decide != nil
		},
		Tunnel: func(ctx context.Context, conn net.Conn, host string, port uint16, protocol string) error {
			h, err := egress.ParseHost(host)
			if err != nil {
				conn.Close()
				return fmt.Errorf("sandbox: %w", err)
			}
			return g.Tunnel(ctx, conn, egress.Target{Host: h, Port: port, Protocol: protocol})
		},
		Denied: func(protocol, host string, port uint16, why string) {
			o.deny(Violation{Time: time.Now(), Protocol: protocol, Host: host, Port: port, Why: why}, n.Observe)
		},
	}
}

// deny notes what the capture itself has refused.
func (o *outlet) deny(v Violation, observe func(Connection)) {
	o.mu.Lock()
	if len(o.denied) < mostDenied {
		v.Remedy = remedyFor(v)
		o.denied = append(o.denied, v)
	} else {
		o.beyond++
	}
	o.mu.Unlock()
	if observe != nil {
		observe(Connection{Time: v.Time, Protocol: v.Protocol, Host: v.Host, Port: v.Port, Reason: v.Why})
	}
}

// captureWord is how a capture begins in the words of what is served.
const captureWord = "capture"
