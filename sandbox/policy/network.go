package policy

import (
	"context"
	"net/netip"
	"time"
)

// Network says what the tool can connect to. The zero value is nothing but a
// loopback of its own.
//
// Hosts opens the network by name. The tool stays in an empty network namespace
// (on a host without namespaces: behind a filter for sockets, and on macOS behind a
// profile, where the proxies are at the machine's loopback); what leaves it leaves
// through an HTTP and a SOCKS5 proxy which the harness serves on the tool's loopback,
// and which its environment names. There is no other way out, so a tool that knows no
// proxies reaches nothing: Capture is for those.
//
// Special addresses are denied even where a rule allows the name, before it is
// resolved and after: loopback, link-local (and with it the machines' metadata
// services), private and shared ranges, multicast, the host's own addresses, which
// the kernel is asked for. A rule in Hosts for addresses within such a range allows
// those; a metadata service and the host's own addresses, in whatever range they
// are, need a rule for that one address. The address that was checked is the one
// that is dialled.
//
// What a host cannot give of this is a sandbox.UnsupportedError from sandbox.New, or, where
// Policy.May names the network, a note in the report; SSH and Capture say what
// they do where less than that is missing.
//
// A permitted host can be sent anything, and what it does with that is not bounded.
type Network struct {
	// Host shares the harness's network: every address it can reach, and every
	// server that listens on its loopback. The network is not bounded then, and the
	// report says so. Only Unix, SSHAgent and GPGAgent can be combined with it.
	Host bool

	// Hosts lists what may be connected to: "example.com" (any port),
	// "example.com:443", "example.com:8000-8100", "*.example.com" (every name below
	// it, and not itself), "10.1.2.3:22", "10.0.0.0/8", "[2001:db8::1]:80", "*".
	// A name has public addresses alone, but for "mirror.example.com:443@private", which may also have private ones.
	// Names are compared in one canonical form, without case or trailing dot, and
	// international ones as IDNA has them. Nil and empty are the same: nothing. The
	// harness's own "localhost" is no entry, but Loopback's.
	Hosts []string
	// Explain serves an HTTP proxy that denies every host where no other field asks for proxies, so that programs fail
	// at once with the reason and each denial is a sandbox.Violation, where else they cannot resolve a name or
	// try again for a minute. The presets set it. It opens nothing. The proxy is made by a run's first
	// connection, and takes 64 at one time. Without a network namespace it is not there.
	Explain bool
	// Deny lists, in the notation of Hosts, what stays denied although Hosts or UDP has
	// it or Decide would allow it.
	Deny []string

	// UDP lists, in the notation of Hosts and always with a port or a range of them,
	// what datagrams may be sent to: "time.example.com:123", "*.example.com:443",
	// "10.1.2.3:5000-5100". It takes a Capture, which is what carries them. Nil and
	// empty are the same: nothing; a client of HTTP/3 is refused at once, and goes on
	// by TCP.
	//
	// The two lists are separate: an entry of Hosts allows connections only, one of UDP
	// datagrams only, though the capture answers DNS questions for the names of both.
	// Everything else is as with Hosts: Deny wins, a special address needs an entry of
	// its own (here), and datagrams go only to, and are accepted only from, the address
	// that was checked. Decide is not asked. Multicast and broadcast addresses cannot be
	// opened. With an entry for port 53 of a server, questions to that server pass; all
	// other DNS questions are answered by the capture.
	//
	// An entry that shares a port with one of Credentials or Requests, whatever the
	// hosts, is an error: HTTP/3 would bypass both, and whom a datagram of QUIC is for
	// cannot be seen.
	//
	// Datagrams between one socket of the tool and one peer are a flow. It ends when
	// no datagram has passed for a minute (at port 53: ten seconds), counts as one of
	// Limits.Connections while it lasts, and is one [Connection].
	UDP []string

	// Loopback lists ports of the harness's own loopback, such as a database's,
	// which the tool finds at the same port of its loopback.
	Loopback []uint16
	// Listen lists ports on which a server of the tool's can be reached from the
	// harness, by sandbox.Cmd.DialInside. Without namespaces it
	// takes a supervisor, and every user of the machine can connect to such a server.
	Listen []uint16
	// Unix lists sockets of the host, by absolute path, that may be connected to,
	// such as a container daemon's. A tool that can talk to a daemon can do what the
	// daemon does. It needs namespaces, and so do the agents.
	Unix []string

	// SSH lets ssh reach hosts, and with it scp, sftp, git, rsync and other programs
	// that start it: inside, a ProxyCommand connects through the HTTP proxy, and a
	// ssh_config in the place of the system's names it, before the system's own
	// text. That ProxyCommand is the harness's own executable, which the tool can read and
	// execute for this purpose only. Where the policy hides the system's
	// ssh_config, and with a Policy.Root, git alone is told, by GIT_SSH_COMMAND, and the
	// report says so. It takes a mount namespace; without one ssh reaches nothing, and
	// the report says so.
	//
	// Known hosts and identities come from the user's ssh configuration. To show it:
	// Files.Read of ~/.ssh/known_hosts and ~/.ssh/config, and SSHAgent for the keys.
	SSH bool

	// SSHAgent and GPGAgent let the tool sign with the keys of the user's agents.
	// Its requests pass a filter: keys can be listed and used to sign, and cannot
	// be added, removed, exported or locked. The harness's SSH_AUTH_SOCK, and what
	// gpg takes for its agent's socket, have to exist.
	SSHAgent bool
	GPGAgent bool

	// Credentials are secrets that the tool can use and does not have.
	Credentials []Credential
	// Requests bounds the requests to hosts that Hosts allows, where the harness
	// sees them: in plain HTTP, and in HTTPS by ending TLS; see Credential.
	// If a host has a rule here, requests that match none of its rules are denied.
	Requests []RequestRule

	// Lookup resolves the names of hosts. Nil: the harness's own resolver. Its
	// answers are checked like any other: an address that is not the public
	// Internet's needs a rule of its own.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error) `json:"-"`
	// Authorities are certificates in PEM, of a private authority for instance, that
	// servers may be signed by beside the system's: the harness trusts them where
	// it ends TLS, and the tool finds them in its trust bundle. This is the text, not
	// a file's name.
	Authorities string

	// Decide is asked about a host that neither Hosts nor Deny names. Nil: all of these are denied. No
	// answer opens an address that needs a rule of its own. It is not asked about datagrams. The names that
	// it allows are counted (Limits.Names), as those below a "*" are; its calls are not.
	// It is called from many goroutines, at most Limits.Connections at one time, and never for two questions about one host:
	// a question waits for its turn, for Patience at most. Its context ends with the run, and after Patience; an answer that has not come by then is a denial, of that
	// one question.
	//
	// Connections to one host and port, by whatever protocol, are one question, and requests are (where the harness sees
	// them) that have the same method and path, too: all that wait get the same answer, and so do later ones for as long as [Verdict] For says. A yes to a
	// connection answers no request; a no that lasts is to the host and port, whatever is asked of it. The events and the report name the rule of a remembered answer "Decide, for the
	// run" or "Decide, for the sandbox".
	Decide func(ctx context.Context, r Request) Verdict `json:"-"`
	// Patience is how long Decide may take. Zero: 30 seconds.
	Patience time.Duration
	// Observe is told of every connection, and of every request that the harness
	// sees, allowed or denied, once it is over: by one goroutine of each run, in order.
	// Commands that run at the same time call it at the same time. Denials by one rule and for one reason, of one host and
	// port, are told once, and at the end as a number ([Connection.Again]). If it is too slow, calls
	// are dropped and counted in the report, those of denials first. With Observe set and Hosts empty
	// the proxies exist and deny everything.
	Observe func(c Connection) `json:"-"`

	// Limits bounds what passes.
	Limits NetworkLimits

	// Capture takes the packets of programs that use no proxy. Nil: they reach
	// nothing. It needs a network namespace and /dev/net/tun; where the latter is
	// missing, or the harness may not open it, only the proxies are served, and the
	// report says so.
	Capture Capture `json:"-"`
}

// NetworkLimits bounds the traffic between one run's tool and the network, through the
// proxies, a Capture and Loopback. Not counted are sockets of Unix, the agents (64
// connections of which are served at one time), and sandbox.Cmd.DialInside.
//
// Reaching a limit is reported to the client, and is a sandbox.Violation whose remedy names the
// field. A connection beyond Connections is refused, and may be tried again; one that is
// open when Bytes have passed is ended.
type NetworkLimits struct {
	Connections int   // of the tool, open at one time, flows of datagrams among them; zero: 1024
	Bytes       int64 // both ways together, headers too, then everything is refused; zero: no limit
	Rate        int64 // bytes per second, both ways and all connections together; zero: no limit
	Names       int   // different names below one "*" rule, or allowed by Decide, since each look-up tells a name server something; zero: 512
}

// A Request is what [Network.Decide] is asked about.
type Request struct {
	Host     string `json:"host"` // canonical: a name, or an address
	Port     uint16 `json:"port"`
	Protocol string `json:"protocol"`         // "http", "https", "connect", "socks", with a capture "tcp" ...
	Method   string `json:"method,omitempty"` // "" where the harness does not see it
	Path     string `json:"path,omitempty"`
	Rule     string `json:"rule,omitempty"` // which rule has left it open; "": none is about it
}

// A Connection is one connection of the tool's, or one request where the harness
// sees them, when it is over. As JSON it is one line of a log, with the names that a
// sandbox.Violation has.
type Connection struct {
	Time     time.Time     `json:"time"`              // when it began
	Protocol string        `json:"protocol"`          // "http", "https", "connect", "socks", with a capture "tcp", "udp" ...
	Host     string        `json:"host"`              // canonical: a name, or an address
	Address  string        `json:"address,omitempty"` // what was dialled; "": nothing was
	Port     uint16        `json:"port,omitempty"`
	Method   string        `json:"method,omitempty"` // "" where the harness does not see it
	Path     string        `json:"path,omitempty"`   // without the query
	Allowed  bool          `json:"allowed"`          // and was not ended by a limit
	Rule     string        `json:"rule,omitempty"`   // which rule decided, or "Decide", "Decide, for the run", "inside: the tool's own loopback" ...; "": none is about it
	Reason   string        `json:"why,omitempty"`    // why it was denied, or which limit has ended it, in words
	Sent     int64         `json:"sent"`             // bytes from the tool
	Received int64         `json:"received"`         // bytes to the tool
	Duration time.Duration `json:"nanoseconds"`
	Err      string        `json:"err,omitempty"`   // what went wrong with one that was allowed
	Again    int           `json:"again,omitempty"` // denials of the same kind after this one; told when the run ends
}
