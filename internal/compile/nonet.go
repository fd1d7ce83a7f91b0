package compile

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// Without a network namespace the proxies listen on the host's own loopback, each
// run's at ports of its own, and ask for the run's key. The tool can make sockets of
// TCP, UNIX and, to ask for interfaces, rtnetlink(7), and no others; connect(2) and bind(2) stop at the supervisor, which connects to the
// proxies and to servers of the tool's own, by TCP and UNIX, alone. Where Landlock rules on ports it
// keeps the tool itself from both.

// withoutNet reports whether the supervisor can stand in for a network namespace.
func (c *compilation) withoutNet() bool {
	return !c.namespaced && !c.open(policy.BoundNetwork) && !c.Policy.Network.Host && c.Facts.Seccomp.Yes() && c.Facts.Notify.Yes()
}

// guarded reports whether it does, for one that leads to the harness.
func (c *compilation) guarded() bool {
	return c.withoutNet() && (c.NetConfig.Proxied || len(c.NetConfig.Loopback) > 0)
}

// local reports whether the supervisor lets the tool's own processes meet at sockets, and at no others: where files are bounded and there
// is a supervisor for another reason, too, or the harness is to reach a server. One more filter and its process are much for a policy that has none.
func (c *compilation) local() bool {
	return c.withoutNet() && !c.open(policy.BoundFiles) && (c.guarded() || c.guardsNames() || c.NetConfig.Dials)
}

// streams reports whether the supervisor makes, binds and connects the tool's sockets.
func (c *compilation) streams() bool { return c.local() || c.guarded() }

// givenPorts is how many of the addresses each run gives: those of its proxies.
func (c *compilation) givenPorts() int {
	if c.guarded() && c.NetConfig.Proxied {
		return 2
	}
	return 0
}

// endpoints are the addresses that the tool can connect to: the ports of the
// harness that the policy names, and two in whose place each run has its proxies.
func (c *compilation) endpoints() []supervisor.Endpoint {
	if !c.streams() {
		return nil
	}
	list := []supervisor.Endpoint{}
	if !c.guarded() {
		return list
	}
	for _, port := range c.NetConfig.Loopback {
		list = append(list, supervisor.Endpoint{Addr: Loopback4.As4(), Port: port})
	}
	for i := range c.givenPorts() {
		list = append(list, supervisor.Endpoint{Addr: Loopback4.As4(), Port: uint16(i + 1)})
	}
	return list
}

// lackNetwork says what of the policy's network this host cannot give. Nothing is
// bounded less for it; but a tool that needs it would not work.
func (c *compilation) lackNetwork() {
	w := c.NetConfig
	if w.NoRelay {
		c.note(policy.BoundNetwork, "ssh reaches nothing: the program by which it would connect is shown in a root of the sandbox's own alone")
	}
	if w.Relay != "" && len(w.SSH) == 0 {
		c.note(policy.BoundNetwork, "git's ssh alone is told how to connect: the tool finds no ssh_config of the system's")
	}
	if c.plan.Namespaces.Net || c.open(policy.BoundNetwork) {
		return
	}
	lack := func(f host.Fact, asked bool, what string) {
		if asked {
			c.lack(f, what)
		}
	}
	notify := c.Facts.Notify
	if notify.Yes() {
		notify = c.Facts.Seccomp
	}
	lack(notify, !notify.Yes() && (w.Proxied || len(w.Loopback) > 0) && !c.namespaced, "no proxy can be reached: without a network namespace the supervisor has to hold connections")
	lack(c.Facts.Namespaces, w.Dials && !c.streams(), "servers inside cannot be reached from outside by Network.Listen")
	if !c.streams() && !c.Policy.Network.Host {
		c.note(policy.BoundNetwork, "sockets cannot be made, not even on loopback: neither a network namespace nor the supervisor keeps them from the host's network")
	}
	if !c.namespaced {
		lack(c.Facts.Namespaces, w.SSHAgent || w.GPGAgent, "the agents cannot be reached: only local sockets of the tool's own are")
		lack(c.Facts.Namespaces, !c.Policy.Network.Host && slices.ContainsFunc(c.Tree.Entries, func(e resolve.Entry) bool { return e.Kind == pathrule.Socket }), "Network.Unix cannot be reached: only local sockets of the tool's own are")
		lack(c.Facts.Namespaces, w.Captures, w.WithoutCapture()+": there is no network namespace to capture")
	}
	if w.Dials && c.streams() {
		c.note(policy.BoundNetwork, "there is no network namespace: the tool's servers are on the host's loopback, at an address of the sandbox's own, to which every user of the host can connect")
	}
	if c.guarded() {
		c.note(policy.BoundNetwork, "there is no network namespace: the tool connects to the proxies on the host's loopback, which ask for the run's key, and to servers of the same command")
	}
}

// lack is an error, unless the policy says that the network may be weaker.
func (c *compilation) lack(f host.Fact, what string) {
	l := lossOf(f, what)
	if slices.Contains(c.Policy.May, policy.BoundNetwork) {
		c.note(policy.BoundNetwork, l.String())
		return
	}
	c.unsupported = append(c.unsupported, lacking(policy.BoundNetwork, l))
}

const (
	familyUnix, familyInet, familyInet6, familyNetlink = 1, 2, 10, 16
	typeStream, typeSeqpacket                          = 1, 5
	protocolTCP                                        = 6

	protocolICMP, protocolICMP6 = 1, 58
	flagFastOpen                = 0x20000000 // MSG_FASTOPEN: a connection by sending
)

// Streams takes the place of a network namespace together with the supervisor: the
// tool has sockets of TCP, of netlink to ask for interfaces and, if local, of UNIX with connections, and no others;
// nothing connects, binds or listens but the supervisor.
func Streams(local bool) []seccomp.Rule {
	const held = "only sockets that the supervisor connects are held without a network namespace"
	refuse := func(why string, args []seccomp.Arg, names ...string) seccomp.Rule {
		return seccomp.Rule{Names: names, Action: seccomp.Errno(errAccess), Args: args, Reason: why}
	}
	families := []seccomp.Arg{{Index: 0, Op: seccomp.NotEqual, Value: familyInet}, {Index: 0, Op: seccomp.NotEqual, Value: familyInet6}, {Index: 0, Op: seccomp.NotEqual, Value: familyNetlink}} // none of which it is
	if local {
		families = append(families, seccomp.Arg{Index: 0, Op: seccomp.NotEqual, Value: familyUnix})
	}
	rules := []seccomp.Rule{
		noSockets[1], noSockets[2], // pairs of datagram sockets
		refuse("a ring makes sockets that no filter sees", nil, "io_uring_setup"),
		refuse("stops the kernel while it holds a socket, for which the supervisor would wait", nil, "userfaultfd"),
		refuse(held, families, "socket"),
		refuse(held, []seccomp.Arg{{Index: 2, Op: seccomp.NotEqual, Value: 0}, {Index: 2, Op: seccomp.NotEqual, Value: protocolTCP}}, "socket"),
		refuse(held, []seccomp.Arg{{Index: 0, Value: familyNetlink}, {Index: 2, Op: seccomp.NotEqual, Value: 0}}, "socket"), // but for NETLINK_ROUTE
	}
	for kind := range uint64(typeMask + 1) {
		if kind == typeStream {
			continue
		}
		args := []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: kind}}
		switch kind {
		case typeSeqpacket:
			args = append(args, seccomp.Arg{Index: 0, Op: seccomp.NotEqual, Value: familyUnix})
		case typeDgram, typeRaw:
			args = append(args, seccomp.Arg{Index: 0, Op: seccomp.NotEqual, Value: familyNetlink})
		}
		rules = append(rules, refuse(held, args, "socket"))
	}
	for name, index := range map[string]uint8{"sendto": 3, "sendmsg": 2, "sendmmsg": 3} {
		rules = append(rules, refuse("it connects, past the supervisor", []seccomp.Arg{{Index: index, Op: seccomp.MaskedEqual, Mask: flagFastOpen, Value: flagFastOpen}}, name))
	}
	slices.SortStableFunc(rules, func(a, b seccomp.Rule) int { return strings.Compare(a.Names[0], b.Names[0]) })
	return rules
}
