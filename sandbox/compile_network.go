package sandbox

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
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
	slotDNS // and after it: for each of resolvers, datagrams and streams
	_
	_
	_
	slotSSH
	slotGPG
	slotLoopback // and after it, one for each port
)

// captureDevice is what the tool's namespace has for a capture: of this network,
// which belongs to nobody (RFC 2544), a capture gives an address to each name.
var captureDevice = plan.Tun{
	Name: "tun0", Addr: netip.MustParsePrefix("198.18.0.1/15"), Addr6: netip.MustParsePrefix("fd00:686f:6c64::1/64"), MTU: 65520, Slot: slotTun,
}

// A wiring is what the plan has of a policy's network. It has no secret and no
// function, so that plans can be compared.
type wiring struct {
	gated       bool // there are proxies
	http, socks uint16
	loopback    []uint16    // of the host, found at the same ports inside
	dialled     bool        // the harness connects to servers inside
	trusts      bool        // TLS is ended: a trust bundle is shown
	bundle      string      // where the system's own is shown, which the sandbox's covers; "": nowhere
	relay       string      // the harness's program, which ssh connects by; "": it does not
	unrelayed   bool        // it was to, and there is no place to show the program at
	ssh         []sshConfig // what ssh reads of the system's, as the sandbox has it; none: git alone is told of the relay
	sshAgent    bool
	gpgAgent    bool
	captured    bool     // asked for
	datagrams   bool     // some are granted, which a capture carries
	sockets     []string // of the host, canonical; of a layout
	place       string   // the sandbox's own directory inside; "": the run's own, on the host
	home        string   // the tool's, where gpg looks for its agent
	direct      bool     // there is one loopback, the machine's, and a profile holds who may connect where
}

// wire says what the plan needs of a network. It is pure.
func wireNetwork(n Network) wiring {
	w := wiring{
		gated: n.Proxied(), loopback: n.Loopback, dialled: len(n.Listen) > 0, captured: n.Capture != nil, datagrams: len(n.UDP) > 0,
		trusts: len(n.Credentials)+len(n.Requests)+len(n.Authorities) > 0, sshAgent: n.SSHAgent, gpgAgent: n.GPGAgent,
	}
	if w.gated {
		taken := slices.Concat(n.Loopback, n.Listen)
		w.http = freePort(portHTTP, taken)
		w.socks = freePort(portSOCKS, append(taken, w.http))
	}
	return w
}

// uncaptured says what is missing where nothing is captured.
func (w wiring) uncaptured() string {
	if w.datagrams {
		return "programs that use no proxy reach nothing, and no datagram of Network.UDP is carried"
	}
	return "programs that use no proxy reach nothing"
}

// freePort is port, or the next one that is not taken.
func freePort(port uint16, taken []uint16) uint16 {
	for slices.Contains(taken, port) {
		port++
	}
	return port
}

// routes adds the ways out of the network namespace, which the harness serves,
// and the files that they need. It comes once the root has been built, while init
// has its rights and the root can be written.
func (c *compilation) routes() {
	w := c.wiring
	if w.trusts && w.place != "" {
		c.ownFile(bundleFile, 1, "the authorities that the tool is to trust")
		c.ownFile(storeFile, 2, "the same for Java")
	}
	if w.bundle != "" {
		c.do(plan.Cover{Path: w.bundle, By: pathrule.Join(w.place, bundleFile)}, plan.Setup, "for tools that look nowhere else")
	}
	if w.relay != "" {
		c.showRelay()
		c.showConfigs()
	}
	if c.plan.Namespaces.Net {
		c.listeners()
	}
	if w.sshAgent && w.place != "" {
		c.do(plan.Listen{Network: "unix", Path: pathrule.Join(w.place, sshFile), Mode: 0o600, Slot: slotSSH}, plan.EgressProxy, "the harness asks the agent, for signatures alone")
	}
	if w.gpgAgent && !c.open(policy.BoundFiles) { // never in a home that is the host's
		c.do(plan.Listen{Network: "unix", Path: w.gpgSocket(), Mode: 0o600, Slot: slotGPG}, plan.EgressProxy, "the harness asks the agent, for signatures alone")
	}
}

// listeners adds those of the network namespace's loopback.
func (c *compilation) listeners() {
	w := c.wiring
	listen := func(port uint16, slot int, why string) {
		c.do(plan.Listen{Network: "tcp4", Addr: netip.AddrPortFrom(loopback4, port), Slot: slot}, plan.EgressProxy, why)
	}
	if w.gated {
		listen(w.http, slotHTTP, "the HTTP proxy, which is the harness")
		listen(w.socks, slotSOCKS, "the SOCKS proxy, which is the harness")
	}
	for i, port := range w.loopback {
		listen(port, slotLoopback+i, "the harness passes it on to its own loopback")
	}
	if w.dialled {
		c.do(plan.Dialer{Slot: slotDialer}, plan.Setup, "the harness connects to servers inside")
	}
	switch {
	case !w.captured:
	case !c.facts.TUN.Yes():
		c.note(policy.BoundNetwork, w.uncaptured()+", because nothing is captured: "+c.facts.TUN.Reason+" (remedy: "+c.facts.TUN.Remedy+")")
	default:
		c.do(captureDevice, plan.Capture, "what uses no proxy is captured")
		for i, at := range resolvers {
			for j, network := range []string{"udp4", "tcp4"} {
				c.do(plan.Listen{Network: network, Addr: netip.AddrPortFrom(at, portDNS), Slot: slotDNS + 2*i + j}, plan.Capture, "names are answered by the capture")
			}
		}
	}
}

// ownFile adds one of the files in the sandbox's own place.
func (c *compilation) ownFile(name string, given int, why string) {
	at := pathrule.Join(c.wiring.place, name)
	if c.policy.Root != nil {
		c.do(plan.PutFile{At: at, Mode: 0o444, Given: given}, plan.Setup, why)
		return
	}
	c.do(plan.MakeFile{Path: at, Mode: 0o444, Given: given}, plan.Setup, why)
}

// showRelay shows the harness's own program, which is a relay under that name.
func (c *compilation) showRelay() {
	at := pathrule.Join(c.wiring.place, clientenv.RelayName)
	if c.policy.Root != nil {
		c.do(plan.PutBind{Source: c.wiring.relay, At: at}, plan.Setup, "ssh connects by it")
		return
	}
	c.do(plan.Bind{Source: c.wiring.relay, At: at}, plan.Setup, "ssh connects by it")
}

// An sshConfig is a file of ssh's configuration that the tool finds at a path of the
// system's.
type sshConfig struct {
	at, text string
	made     bool // there is none of the host's at that path
}

// showConfigs shows ssh's configuration in the place of the system's.
func (c *compilation) showConfigs() {
	for i, f := range c.wiring.ssh {
		const why = "ssh connects by the relay, and takes no file that it cannot tell the owner of"
		if f.made {
			c.do(plan.MakeFile{Path: f.at, Mode: 0o444, Data: f.text}, plan.Setup, why)
			continue
		}
		own := pathrule.Join(c.wiring.place, configFile+strconv.Itoa(i))
		c.do(plan.MakeFile{Path: own, Mode: 0o444, Data: f.text}, plan.Setup, why)
		c.do(plan.Cover{Path: f.at, By: own}, plan.Setup, why)
	}
}

// ownRules lets Landlock grant the sandbox's own place.
func (c *compilation) ownRules() []landlock.PathRule {
	w := c.wiring
	var rules []landlock.PathRule
	switch {
	case !w.hasFiles():
	case w.place == "":
		rules = append(rules, landlock.PathRule{Path: plan.OwnDirectory, Access: accessWrite})
	default:
		rules = append(rules, landlock.PathRule{Path: w.place, Access: landlock.FSRead | accessSocket})
	}
	if w.relay != "" {
		rules = append(rules, landlock.PathRule{Path: pathrule.Join(w.place, clientenv.RelayName), Access: accessRead &^ landlock.FSReadDir})
	}
	for _, f := range w.ssh {
		if f.made {
			rules = append(rules, landlock.PathRule{Path: f.at, Access: landlock.FSReadFile})
		}
	}
	if w.gpgAgent { // whose place is in the tool's home
		rules = append(rules, landlock.PathRule{Path: w.gpgSocket(), Access: accessSocket})
	}
	return rules
}

func (c *compilation) note(b Bound, text string) {
	if c.notes == nil {
		c.notes = map[Bound][]string{}
	}
	c.notes[b] = append(c.notes[b], text)
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// resolvers are where a host's resolv.conf, which the tool has, sends questions for
// names when it is not to another host: a server of its own, systemd-resolved's stub.
var resolvers = [2]netip.Addr{loopback4, netip.AddrFrom4([4]byte{127, 0, 0, 53})}
