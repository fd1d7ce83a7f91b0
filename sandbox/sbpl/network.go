package sbpl

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// Errnos and kinds of sockets, the same on every architecture.
const (
	errPerm      = 1
	errNoSys     = 38
	familyUnix   = 1 // AF_UNIX
	familyInet   = 2
	familyInet6  = 10
	typeDatagram = 2 // SOCK_DGRAM
	typeRaw      = 3 // SOCK_RAW, which AF_UNIX takes for SOCK_DGRAM
	typeMask     = 0xf
	cloneThread  = 0x10000 // CLONE_THREAD
	memoryNoExec = 0x8     // MFD_NOEXEC_SEAL
)

// refuse adds a filter rule that answers EPERM, as seatbelt does.
func (c *compiler) refuse(why string, calls ...string) {
	c.calls = append(c.calls, seccomp.Rule{Names: calls, Action: seccomp.Errno(errPerm), Reason: why})
}

// somewhere is an address that no rule means unless it means every one.
const somewhere = "192.0.2.1:49151"

// network chooses between the host's network, of which the profile allows
// everything, and an empty one, and refuses the calls that are denied as a whole.
func (c *compiler) network() {
	remote := c.sockets("network-outbound")
	local := c.sockets("network-bind")
	accepts := c.sockets("network-inbound")
	c.policy.Network.Host = remote.every && local.every && accepts.every
	if !c.policy.Network.Host {
		const why = "the sandbox has a network of its own, with nothing in it"
		for _, s := range []sockets{remote, local, accepts} {
			for _, v := range s.answers {
				if v.allow {
					c.differ(v, Narrower, why, s.operation)
				}
			}
			c.blame(s.operation, seatbelt.Allow, Narrower, why)
		}
	}
	c.unix(remote, local, accepts)
	if !local.any && !local.path {
		c.refuse("the profile denies network-bind", "bind")
	} else if !c.policy.Network.Host && !local.every {
		c.denied(local, "an address of the sandbox's own network can be bound")
	}
	if !accepts.any && !accepts.path {
		c.refuse("the profile denies network-inbound", "listen", "accept", "accept4")
	} else if !c.policy.Network.Host && !accepts.every {
		c.denied(accepts, "what is inside can be accepted from")
	}
	if !remote.any && !remote.path {
		c.refuse("the profile denies network-outbound", "connect")
		c.noDatagrams(familyUnix)
		if !local.any {
			c.noDatagrams(familyInet)
			c.noDatagrams(familyInet6)
		} else {
			c.denied(remote, "a message can be sent within the sandbox's own network")
		}
	} else if !c.policy.Network.Host && !remote.every {
		c.denied(remote, "servers in the sandbox's own network can be connected to")
	}
}

// denied notes, where some of an operation is allowed, that all of it is possible
// within the sandbox's own network.
func (c *compiler) denied(s sockets, why string) {
	c.blame(s.operation, seatbelt.Deny, Own, why)
	for _, v := range s.answers {
		if !v.allow {
			c.differ(v, Own, why, s.operation)
		}
	}
}

// sockets is what a profile says of one of the three operations.
type sockets struct {
	operation string
	answers   []verdict // about addresses that stand for all
	every     bool      // every address and every path
	any       bool      // some address
	path      bool      // some path
	all       bool      // every path
}

func (c *compiler) sockets(operation string) sockets {
	s := sockets{operation: operation, every: true}
	for _, protocol := range []string{"tcp", "udp"} {
		for _, address := range []string{somewhere, "localhost:49151"} {
			v := c.query(seatbelt.Query{Operation: operation, Address: address, Protocol: protocol})
			s.answers = append(s.answers, v)
			s.every = s.every && v.allow
			s.any = s.any || v.allow
		}
	}
	at := c.query(seatbelt.Query{Operation: operation, Path: join("/", c.any), Protocol: "unix"})
	s.path, s.all = at.allow, at.allow
	for _, r := range c.profile.Rules {
		if !slices.ContainsFunc(r.Operations, func(o string) bool { return covers(o, operation) }) || len(r.Filters) == 0 {
			continue
		}
		unix, ip := socketKinds(r.Filters)
		if r.Action == seatbelt.Allow {
			s.any, s.path = s.any || ip, s.path || unix
		} else if ip {
			s.every = false
		}
		if r.Action == seatbelt.Deny && unix {
			s.all = false
		}
	}
	return s
}

// socketKinds says which kinds of addresses filters can match.
func socketKinds(filters []seatbelt.Filter) (unix, ip bool) {
	eachFilter(filters, func(f seatbelt.Filter) {
		switch f.Kind {
		case "literal", "subpath", "regex", "prefix":
			unix = true
		case "remote", "local":
			if len(f.Args) > 0 && strings.HasPrefix(f.Args[0], "unix") {
				unix = true
			} else {
				ip = true
			}
		case "require-all", "require-any":
		default:
			unix, ip = true, true
		}
	})
	return unix, ip
}

// unix decides about the sockets that have paths. A mount hides one; nothing else
// on Linux refuses a connection by path.
func (c *compiler) unix(remote, local, accepts sockets) {
	if !remote.path && !local.path && !accepts.path {
		if remote.any || local.any || accepts.any { // otherwise the calls themselves are refused
			c.calls = append(c.calls, seccomp.Rule{
				Names: []string{"socket"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 0, Value: familyUnix}},
				Reason: "the profile allows no local socket",
			})
			c.noPairs()
		}
		return
	}
	if remote.path && !remote.all {
		const why = "a local socket that is shown can be connected to"
		c.blame("network-outbound", seatbelt.Deny, Wider, why)
		c.differ(c.query(seatbelt.Query{Operation: "network-outbound", Path: join("/", c.any), Protocol: "unix"}), Wider, why, "network-outbound")
	}
	for _, s := range []sockets{local, accepts} {
		if s.path && !s.all {
			c.blame(s.operation, seatbelt.Deny, Own, "a local socket can be made wherever files can")
			c.differ(c.query(seatbelt.Query{Operation: s.operation, Path: join("/", c.any), Protocol: "unix"}), Own, "a local socket can be made wherever files can", s.operation)
		}
	}
}

// noDatagrams refuses what connects without connect(2): a datagram socket, whose
// messages carry an address (unix(7)). An address of the empty network is nowhere.
func (c *compiler) noDatagrams(family uint64) {
	for _, kind := range []uint64{typeDatagram, typeRaw} {
		c.calls = append(c.calls, seccomp.Rule{
			Names: []string{"socket"}, Action: seccomp.Errno(errPerm), Reason: "a message of a datagram socket is a connection",
			Args: []seccomp.Arg{{Index: 0, Value: family}, {Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: kind}},
		})
	}
	if family == familyUnix {
		c.noPairs()
	}
}

func (c *compiler) noPairs() {
	for _, kind := range []uint64{typeDatagram, typeRaw} {
		c.calls = append(c.calls, seccomp.Rule{
			Names: []string{"socketpair"}, Action: seccomp.Errno(errPerm), Reason: "one of a pair of datagram sockets can be connected anew",
			Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: kind}},
		})
	}
}

// blame writes a difference down at every rule of an action that names an
// operation or a wildcard over it, but for a default without filters.
func (c *compiler) blame(operation string, action seatbelt.Action, side Toward, why string) {
	for i, r := range c.profile.Rules {
		if r.Action == action && slices.ContainsFunc(r.Operations, func(o string) bool { return (o != "default" || len(r.Filters) > 0) && covers(o, operation) }) {
			c.rules[i].differ(side, why, operation)
		}
	}
}
