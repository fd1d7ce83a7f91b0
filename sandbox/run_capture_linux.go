package sandbox

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

// mostDenied bounds what a report lists, as package egress does.
const mostDenied = 100

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
			o.deny(egress.Event{Time: time.Now(), Protocol: protocol, Host: host, Port: port, Reason: why})
		},
	}
}

// deny notes what was refused elsewhere than in the gateway.
func (o *outlet) deny(e egress.Event) {
	if o.gateway != nil {
		o.gateway.Deny(e)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.denied) < mostDenied {
		o.denied = append(o.denied, violationOf(e))
	}
}

// captureWord is how a capture begins in the words of what is served.
const captureWord = "capture"
