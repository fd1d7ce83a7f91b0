package sandbox

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-dev/holdfast/internal/egress"
)

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
			e := egress.Event{Time: time.Now(), Protocol: protocol, Host: host, Port: port, Reason: why}
			if d := o.denial(host, port); d.Why == why {
				e.Rule = d.Rule
			}
			o.deny(e)
		},
		Why: func(host string, port uint16) string { return o.denial(host, port).Why },
	}
}

// denial says which rule denies a host, if one does, and why it is denied otherwise.
func (o *outlet) denial(host string, port uint16) egress.Decision {
	h, err := egress.ParseHost(host)
	if err != nil {
		return egress.Decision{Why: err.Error()}
	}
	d := o.gateway.Allowed(h, port)
	if d.Outcome == egress.Unknown {
		d.Why = "no rule allows it"
	}
	return d
}
