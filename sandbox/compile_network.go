package sandbox

import (
	"net/netip"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/plan"
)

// Ports of the tool's loopback. The proxies' move when the policy names them.
const (
	portHTTP  = 3128
	portSOCKS = 1080
	portDNS   = 53
)

// The slots in which init passes descriptors up to the harness.
const (
	slotHTTP = iota
	slotSOCKS
	slotTun
	slotDialer
	slotDNS
	slotDNSStream
	slotSSH
	slotGPG
	slotLoopback // and after it, one for each port
)

// ownPlace is the directory inside that holds what is the sandbox's own.
const ownPlace = "/run/holdfast"

// captureDevice is what the tool's namespace has for a capture: of this network,
// which belongs to nobody (RFC 2544), a capture gives an address to each name.
var captureDevice = plan.Tun{Name: "tun0", Addr: netip.MustParsePrefix("198.18.0.1/15"), MTU: 65520, Slot: slotTun}

// A wiring is what the plan has of a policy's network. It has no secret and no
// function, so that plans can be compared.
type wiring struct {
	gated       bool // there are proxies
	http, socks uint16
	loopback    []uint16 // of the host, found at the same ports inside
	dialled     bool     // the harness connects to servers inside
	trusts      bool     // TLS is ended: a trust bundle is shown
	sshAgent    bool
	gpgAgent    bool
	gpgSocket   string   // where gpg looks for its agent inside
	captured    bool     // asked for
	sockets     []string // of the host, canonical
}

// wire says what the plan needs of a network. It is pure.
func (n Network) wire() wiring {
	w := wiring{
		gated: n.gated(), loopback: n.Loopback, dialled: len(n.Listen) > 0, captured: n.Capture != nil,
		trusts: len(n.Credentials)+len(n.Requests) > 0, sshAgent: n.SSHAgent, gpgAgent: n.GPGAgent,
	}
	if w.gated {
		taken := slices.Concat(n.Loopback, n.Listen)
		w.http = freePort(portHTTP, taken)
		w.socks = freePort(portSOCKS, append(taken, w.http))
	}
	return w
}

// freePort is port, or the next one that is not taken.
func freePort(port uint16, taken []uint16) uint16 {
	for slices.Contains(taken, port) {
		port++
	}
	return port
}

// routes adds the ways out of the network namespace, which the harness serves.
// They come while init has its rights, and after the root has been built.
func (c *compilation) routes() {
	w := c.wiring
	if !c.plan.Namespaces.Net {
		c.agents()
		return
	}
	listen := func(port uint16, slot int, why string) {
		c.do(plan.Listen{Network: "tcp4", Addr: netip.AddrPortFrom(loopback4, port), Slot: slot}, plan.EgressProxy, why)
	}
	if w.gated {
		listen(w.http, slotHTTP, "the HTTP proxy is the harness")
		listen(w.socks, slotSOCKS, "the SOCKS proxy is the harness")
	}
	for i, port := range w.loopback {
		listen(port, slotLoopback+i, "the harness passes it on to its own loopback")
	}
	if w.dialled {
		c.do(plan.Dialer{Slot: slotDialer}, plan.Setup, "the harness connects to servers inside")
	}
	c.agents()
}

// agents adds the sockets at which the harness stands before the user's agents.
func (c *compilation) agents() {
	if c.wiring.sshAgent {
		c.do(plan.Listen{Network: "unix", Path: ownPlace + "/ssh-agent", Mode: 0o600, Slot: slotSSH}, plan.EgressProxy, "the harness asks the agent for signatures alone")
	}
	if c.wiring.gpgAgent {
		c.do(plan.Listen{Network: "unix", Path: c.wiring.gpgSocket, Mode: 0o600, Slot: slotGPG}, plan.EgressProxy, "the harness asks the agent for signatures alone")
	}
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
