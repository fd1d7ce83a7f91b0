package compile

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
	PortSOCKS = 1080
	portDNS   = 53
)

// The slots in which init passes descriptors up to the harness.
const (
	SlotHTTP = iota
	SlotSOCKS
	SlotTun
	SlotDialer
	SlotDNS // and after it: for each of resolvers, datagrams and streams
	_
	_
	_
	SlotSSH
	SlotGPG
	SlotLoopback // and after it, one for each port
)

// CaptureDevice is what the tool's namespace has for a capture: of this network,
// which no host has (RFC 2544), a capture gives an address to each name.
var CaptureDevice = plan.Tun{
	Name: "tun0", Addr: netip.MustParsePrefix("198.18.0.1/15"), Addr6: netip.MustParsePrefix("fd00:686f:6c64::1/64"), MTU: 65520, Slot: SlotTun,
}

// A NetConfig is a policy's network, as the plan needs it. It has no secret and no
// function, so that inputs can be compared.
type NetConfig struct {
	Proxied     bool // there are proxies
	Explains    bool // there is none but one that denies everything in words, where there is a network namespace
	HTTP, SOCKS uint16
	Loopback    []uint16    // of the host, found at the same ports inside
	Dials       bool        // the harness connects to servers inside
	EndsTLS     bool        // TLS is ended: a trust bundle is shown
	Bundle      string      // where the system's own is shown, which the sandbox's covers; "": nowhere
	Relay       string      // the harness's program, which ssh connects by; "": it does not
	NoRelay     bool        // it was to, and there is no place to show the program at
	SSH         []SSHConfig // what ssh reads of the system's, as the sandbox has it; none: git alone is told of the relay
	SSHAgent    bool
	GPGAgent    bool
	Captures    bool     // asked for
	Datagrams   bool     // some are granted, which a capture carries
	Sockets     []string // of the host, canonical; of a layout
	Dir         string   // the sandbox's own directory inside; "": the run's own, on the host
	Home        string   // the tool's, where gpg looks for its agent
	Hostname    string   // the machine's name inside; "": the harness's
	Direct      bool     // there is one loopback, the machine's, and a profile holds who may connect where
}

// NewNetConfig returns what the plan needs of a network, without what has to be found on the host.
func NewNetConfig(n policy.Network) NetConfig {
	w := NetConfig{
		Proxied: n.Proxied(), Loopback: n.Loopback, Dials: len(n.Listen) > 0, Captures: n.Capture != nil, Datagrams: len(n.UDP) > 0,
		EndsTLS: len(n.Credentials)+len(n.Requests)+len(n.Authorities) > 0, SSHAgent: n.SSHAgent, GPGAgent: n.GPGAgent,
	}
	w.Explains = n.Explain && !w.Proxied && !n.Host
	if w.Proxied || w.Explains {
		taken := slices.Concat(n.Loopback, n.Listen)
		w.HTTP = freePort(portHTTP, taken)
		w.SOCKS = freePort(PortSOCKS, append(taken, w.HTTP))
	}
	return w
}

// WithoutCapture says what is missing where nothing is captured.
func (w NetConfig) WithoutCapture() string {
	if w.Datagrams {
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
	w := c.NetConfig
	if w.EndsTLS && w.Dir != "" {
		c.ownFile(BundleFile, 1, "the authorities that the tool is to trust")
		c.ownFile(StoreFile, 2, "the same for Java")
	}
	if w.Bundle != "" {
		c.do(plan.Cover{Path: w.Bundle, By: pathrule.Join(w.Dir, BundleFile)}, plan.Setup, "for tools that look nowhere else")
	}
	if w.Relay != "" {
		c.showRelay()
		c.showConfigs()
	}
	if c.plan.Namespaces.Net {
		c.listeners()
	}
	if w.SSHAgent && w.Dir != "" {
		c.do(plan.Listen{Network: "unix", Path: pathrule.Join(w.Dir, SshFile), Mode: 0o600, Slot: SlotSSH}, plan.EgressProxy, "the harness asks the agent, for signatures alone")
	}
	if w.GPGAgent && !c.open(policy.BoundFiles) { // never in a home that is the host's
		c.do(plan.Listen{Network: "unix", Path: w.GPGSocket(), Mode: 0o600, Slot: SlotGPG}, plan.EgressProxy, "the harness asks the agent, for signatures alone")
	}
}

// listeners adds those of the network namespace's loopback.
func (c *compilation) listeners() {
	w := c.NetConfig
	listener := func(port uint16, slot int) plan.Listen {
		return plan.Listen{Network: "tcp4", Addr: netip.AddrPortFrom(Loopback4, port), Slot: slot}
	}
	listen := func(port uint16, slot int, why string) { c.do(listener(port, slot), plan.EgressProxy, why) }
	if w.Explains {
		c.do(listener(w.HTTP, SlotHTTP), plan.NetworkNamespace, "an HTTP proxy, which is the harness, says in words that no host is allowed")
	}
	if w.Proxied {
		listen(w.HTTP, SlotHTTP, "the HTTP proxy, which is the harness")
		listen(w.SOCKS, SlotSOCKS, "the SOCKS proxy, which is the harness")
	}
	for i, port := range w.Loopback {
		listen(port, SlotLoopback+i, "the harness passes it on to its own loopback")
	}
	if w.Dials || (w.Proxied || w.Explains) && !c.plan.AsPID1 {
		c.do(plan.Dialer{Slot: SlotDialer}, plan.Setup, "the harness connects to servers inside")
	}
	switch {
	case !w.Captures:
	case !c.Facts.TUN.Yes():
		c.note(policy.BoundNetwork, w.WithoutCapture()+", because nothing is captured: "+c.Facts.TUN.Reason+" (remedy: "+c.Facts.TUN.Remedy+")")
	default:
		c.do(CaptureDevice, plan.Capture, "what uses no proxy is captured")
		for i, at := range Resolvers {
			for j, network := range []string{"udp4", "tcp4"} {
				c.do(plan.Listen{Network: network, Addr: netip.AddrPortFrom(at, portDNS), Slot: SlotDNS + 2*i + j}, plan.Capture, "names are answered by the capture")
			}
		}
	}
}

// ownFile adds one of the files in the sandbox's own place.
func (c *compilation) ownFile(name string, given int, why string) {
	at := pathrule.Join(c.NetConfig.Dir, name)
	if c.Policy.Root != nil {
		c.do(plan.PutFile{At: at, Mode: 0o444, Given: given}, plan.Setup, why)
		return
	}
	c.do(plan.MakeFile{Path: at, Mode: 0o444, Given: given}, plan.Setup, why)
}

// showRelay shows the harness's own program, which is a relay under that name.
func (c *compilation) showRelay() {
	at := pathrule.Join(c.NetConfig.Dir, clientenv.RelayName)
	if c.Policy.Root != nil {
		c.do(plan.PutBind{Source: c.NetConfig.Relay, At: at}, plan.Setup, "ssh connects by it")
		return
	}
	c.do(plan.Bind{Source: c.NetConfig.Relay, At: at}, plan.Setup, "ssh connects by it")
}

// An SSHConfig is a file of ssh's configuration that the tool finds at a path of the
// system's.
type SSHConfig struct {
	At, Text string
	Made     bool // there is none of the host's at that path
}

// showConfigs shows ssh's configuration in the place of the system's.
func (c *compilation) showConfigs() {
	for i, f := range c.NetConfig.SSH {
		const why = "ssh connects by the relay, and takes no file that it cannot tell the owner of"
		if f.Made {
			c.do(plan.MakeFile{Path: f.At, Mode: 0o444, Data: f.Text}, plan.Setup, why)
			continue
		}
		own := pathrule.Join(c.NetConfig.Dir, ConfigFile+strconv.Itoa(i))
		c.do(plan.MakeFile{Path: own, Mode: 0o444, Data: f.Text}, plan.Setup, why)
		c.do(plan.Cover{Path: f.At, By: own}, plan.Setup, why)
	}
}

// ownRules lets Landlock grant the sandbox's own place.
func (c *compilation) ownRules() []landlock.PathRule {
	w := c.NetConfig
	var rules []landlock.PathRule
	switch {
	case !w.HasFiles():
	case w.Dir == "":
		rules = append(rules, landlock.PathRule{Path: plan.OwnDirectory, Access: accessWrite})
	default:
		rules = append(rules, landlock.PathRule{Path: w.Dir, Access: landlock.FSRead | accessSocket})
	}
	if w.Relay != "" {
		rules = append(rules, landlock.PathRule{Path: pathrule.Join(w.Dir, clientenv.RelayName), Access: accessRead &^ landlock.FSReadDir})
	}
	for _, f := range w.SSH {
		if f.Made {
			rules = append(rules, landlock.PathRule{Path: f.At, Access: landlock.FSReadFile})
		}
	}
	if w.GPGAgent { // whose place is in the tool's home
		rules = append(rules, landlock.PathRule{Path: w.GPGSocket(), Access: accessSocket})
	}
	return rules
}

func (c *compilation) note(b policy.Bound, text string) {
	if c.notes == nil {
		c.notes = map[policy.Bound][]string{}
	}
	c.notes[b] = append(c.notes[b], text)
}

// Loopback4 is the address at which a tool finds the proxies and what Network.Connect grants.
var Loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Resolvers are where a host's resolv.conf, which the tool has, sends questions for
// names when it is not to another host: a server of its own, systemd-resolved's stub.
var Resolvers = [2]netip.Addr{Loopback4, netip.AddrFrom4([4]byte{127, 0, 0, 53})}
