package sandbox

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/internal/stage"
)

// plug serves what has come up from inside.
func (r *run) plug() {
	o := r.out
	if o == nil || !r.control.Held {
		return
	}
	w := o.wiring
	http := func(l net.Listener) error { return o.gateway.Serve(l, proxy.HTTP) }
	socks := func(l net.Listener) error { return o.gateway.Serve(l, proxy.SOCKS) }
	if o.outside[0] != nil {
		o.serveOutside()
		return
	}
	if !r.sandbox.plan.Namespaces.Net && len(w.Loopback) > 0 {
		return // the tool connects by itself
	}
	if w.Proxied {
		o.serve(r.control.Received(compile.SlotHTTP), proxyNames[0], http)
		o.serve(r.control.Received(compile.SlotSOCKS), proxyNames[1], socks)
	}
	for i, port := range w.Loopback {
		to := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
		o.serve(r.control.Received(compile.SlotLoopback+i), "loopback", func(l net.Listener) error { return o.gateway.Forward(l, to) })
	}
	to := r.sandbox.world
	if w.SSHAgent {
		o.serve(r.control.Received(compile.SlotSSH), "ssh-agent", func(l net.Listener) error { return o.serveAgent(l, "ssh-agent", to.ssh, agent.SSH) })
	}
	if w.GPGAgent {
		o.serve(r.control.Received(compile.SlotGPG), "gpg-agent", func(l net.Listener) error { return o.serveAgent(l, "gpg-agent", to.gpg, agent.GPG) })
	}
	if f := r.control.Received(compile.SlotDialer); f != nil {
		d := stage.NewDialer(f)
		o.mu.Lock()
		o.dial, o.endings = d.Dial, append(o.endings, func() { d.Close() })
		o.mu.Unlock()
	}
	r.plugCapture(o)
}

// serve serves one listener of the sandbox's until the gateway's end.
func (o *outlet) serve(f *os.File, what string, serve func(net.Listener) error) {
	if f == nil {
		o.note(what + " is not served: no listener has come from inside")
		return
	}
	l, err := net.FileListener(f)
	f.Close()
	if err != nil {
		o.note(fmt.Sprintf("%s is not served: %v", what, err))
		return
	}
	o.serveListener(l, what, serve)
}

// plugCapture hands the sandbox's device to the policy's capture.
func (r *run) plugCapture(o *outlet) {
	tun := r.control.Received(compile.SlotTun)
	if tun == nil {
		return
	}
	gate := o.captureGate(r.sandbox.policy.Network)
	for i := range compile.Resolvers {
		if f := r.control.Received(compile.SlotDNS + 2*i); f != nil {
			if c, err := net.FilePacketConn(f); err == nil {
				gate.DNS = append(gate.DNS, c)
			}
			f.Close()
		}
		if f := r.control.Received(compile.SlotDNS + 2*i + 1); f != nil {
			if l, err := net.FileListener(f); err == nil {
				gate.DNSStreams = append(gate.DNSStreams, l)
			}
			f.Close()
		}
	}
	stop, err := r.sandbox.policy.Network.Capture(tun, gate)
	if err != nil {
		tun.Close()
		for _, c := range gate.DNS {
			c.Close()
		}
		for _, l := range gate.DNSStreams {
			l.Close()
		}
		o.note(o.wiring.WithoutCapture() + ": the capture has failed: " + err.Error())
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endings = append(o.endings, stop)
	o.served = append(o.served, captureWord+" at "+compile.CaptureDevice.Addr.String())
}
