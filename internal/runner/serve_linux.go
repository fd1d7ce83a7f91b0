package runner

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Serve serves what has come up from inside through the run's control socket. processes lists the sandbox's, if its servers are on the machine's
// loopback; else it is nil. child is the stage.
func (n *Network) Serve(control *stage.Control, processes func() []policy.Process, child int) {
	w := n.wiring
	if n.inside {
		n.mu.Lock()
		n.tables, _ = procNet(child)
		n.mu.Unlock()
	}
	if processes != nil {
		n.mu.Lock()
		n.dial = directDialer{processes}.dial
		n.mu.Unlock()
	}
	http := func(l net.Listener) error { return n.gateway.Serve(l, proxy.HTTP) }
	socks := func(l net.Listener) error { return n.gateway.Serve(l, proxy.SOCKS) }
	if n.outside[0] != nil {
		n.serveOutside()
		return
	}
	if !n.inside && len(w.Loopback) > 0 {
		return // the tool connects by itself
	}
	if f := control.Received(compile.SlotDialer); f != nil {
		d := stage.NewDialer(f)
		n.mu.Lock()
		n.dial, n.endings = d.Dial, append(n.endings, func() { d.Close() })
		n.mu.Unlock()
	}
	if n.explains {
		n.serve(control.Received(compile.SlotHTTP), ProxyNames[0], n.serveExplanation)
	} else if w.Proxied {
		n.serve(control.Received(compile.SlotHTTP), ProxyNames[0], http)
		n.serve(control.Received(compile.SlotSOCKS), ProxyNames[1], socks)
	}
	for i, port := range w.Loopback {
		to := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
		n.serve(control.Received(compile.SlotLoopback+i), "loopback", func(l net.Listener) error { return n.gateway.Forward(l, to) })
	}
	to := n.of.Outside
	if w.SSHAgent {
		n.serve(control.Received(compile.SlotSSH), "ssh-agent", func(l net.Listener) error { return n.serveAgent(l, "ssh-agent", to.SSHAgent, agent.SSH) })
	}
	if w.GPGAgent {
		n.serve(control.Received(compile.SlotGPG), "gpg-agent", func(l net.Listener) error { return n.serveAgent(l, "gpg-agent", to.GPGAgent, agent.GPG) })
	}
	if tun := control.Received(compile.SlotTun); tun != nil {
		n.startCapture(tun, control)
	}
}

// serve serves one listener of the sandbox's until the gateway's end.
func (n *Network) serve(f *os.File, what string, serve func(net.Listener) error) {
	if f == nil {
		n.note(what + " is not served: no listener has come from inside")
		return
	}
	l, err := net.FileListener(f)
	f.Close()
	if err != nil {
		n.note(fmt.Sprintf("%s is not served: %v", what, err))
		return
	}
	n.serveListener(l, what, serve)
}

// startCapture hands the sandbox's device to the policy's capture.
func (n *Network) startCapture(tun *os.File, control *stage.Control) {
	gate := n.CaptureGate()
	for i := range compile.Resolvers {
		if f := control.Received(compile.SlotDNS + 2*i); f != nil {
			if c, err := net.FilePacketConn(f); err == nil {
				gate.DNS = append(gate.DNS, c)
			}
			f.Close()
		}
		if f := control.Received(compile.SlotDNS + 2*i + 1); f != nil {
			if l, err := net.FileListener(f); err == nil {
				gate.DNSStreams = append(gate.DNSStreams, l)
			}
			f.Close()
		}
	}
	stop, err := n.of.policy.Capture(tun, gate)
	if err != nil {
		tun.Close()
		for _, c := range gate.DNS {
			c.Close()
		}
		for _, l := range gate.DNSStreams {
			l.Close()
		}
		n.note(n.wiring.WithoutCapture() + ": the capture has failed: " + err.Error())
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endings = append(n.endings, stop)
	n.served = append(n.served, captureWord+" at "+compile.CaptureDevice.Addr.String())
}
