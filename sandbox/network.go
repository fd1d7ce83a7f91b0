package sandbox

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
// Addresses that nobody means by a name are denied even where a rule allows the
// name, before it is resolved and after: loopback, link-local (and with it the
// machines' metadata services), private and shared ranges, multicast, the host's
// own addresses, which the kernel is asked for. A rule in Hosts for addresses within such
// a range allows those; a metadata service and the host's own, in whatever range
// they are, take a rule of that one address. The address that was judged is the one
// that is dialled.
//
// What a host cannot give of this is an [UnsupportedError] from [New], or, where
// Policy.May names the network, a note in the report; SSH and Capture say what
// they do where less than that is missing.
//
// What a permitted host does with what the tool sends it, nothing here can say:
// whoever may speak to a host may tell it anything.
type Network struct {
	// Host shares the harness's network: every address it can reach, and every
	// server that listens on its loopback. Nothing is bounded then, and the report
	// says so; no other field but Unix and the agents' goes with it.
	Host bool

	// Hosts lists what may be connected to: "example.com" (any port),
	// "example.com:443", "example.com:8000-8100", "*.example.com" (every name below
	// it, and not itself), "10.1.2.3:22", "10.0.0.0/8", "[2001:db8::1]:80", "*".
	// Names are compared in one canonical form, without case or trailing dot, and
	// international ones as IDNA has them. Nil and empty are the same: nothing. The
	// harness's own "localhost" is no entry, but Loopback's.
	Hosts []string
	// Deny lists, in the notation of Hosts, what stays denied although Hosts or UDP has
	// it or Decide would allow it.
	Deny []string

	// UDP lists, in the notation of Hosts and always with a port or a range of them,
	// what datagrams may be sent to: "time.example.com:123", "*.example.com:443",
	// "10.1.2.3:5000-5100". It takes a Capture, which is what carries them. Nil and
	// empty are the same: nothing; a client of HTTP/3 is refused at once, and goes on
	// by TCP.
	//
	// The two lists are apart: an entry of Hosts allows connections alone, one of UDP
	// datagrams alone, though the capture answers questions for the names of both.
	// Everything else is as it is with Hosts: Deny wins, an address that nobody means
	// by a name needs an entry of its own (here), the address that was judged is the
	// one that is sent to, and from no other does anything come back. Decide is not
	// asked. Multicast and broadcast addresses cannot be opened. Whoever has an entry for port
	// 53 of a server asks that server; all other questions for names stay with
	// the capture.
	//
	// No datagram goes to a host at a port at which one of Credentials or Requests
	// speaks of it, nor to an address which that host has been seen to have: HTTP/3
	// would go past both. Entries of UDP that would open such a host, or "*" or
	// a range of public addresses at such a port, are an error.
	//
	// What one socket of the tool's and one peer send each other is a flow. It ends when
	// nothing has passed for a minute (at port 53: ten seconds), counts as one of
	// Limits.Connections while it lasts, and is one [Connection].
	UDP []string

	// Loopback lists ports of the harness's own loopback, such as a database's,
	// which the tool finds at the same port of its loopback.
	Loopback []uint16
	// Listen lists ports on which a server of the tool's can be reached from the
	// harness, by [Cmd.DialInside]. It takes a network namespace.
	Listen []uint16
	// Unix lists sockets of the host, by absolute path, that may be connected to,
	// such as a container daemon's. Whoever speaks to a daemon may do what the
	// daemon does. It takes namespaces, and so do the agents.
	Unix []string

	// SSH lets ssh reach hosts, and with it scp, sftp, git, rsync and whatever else
	// starts it: the tool finds a program that connects by way of the HTTP proxy, and
	// in the place of the system's ssh_config one that names it, before the system's
	// own text. That program is the harness's own executable, shown to the tool to read
	// and to execute, as nothing but that. Where the policy hides the system's
	// ssh_config, and in a Layout, git alone is told, by GIT_SSH_COMMAND, and the
	// report says so. It takes a mount namespace; without one ssh reaches nothing, and
	// the report says so.
	//
	// Whom ssh trusts, and as whom it comes, is up to its own files. To show the user's:
	// Files.Read of ~/.ssh/known_hosts and ~/.ssh/config, and SSHAgent for the keys.
	SSH bool

	// SSHAgent and GPGAgent let the tool sign with the keys of the user's agents.
	// What it says passes a filter: keys can be listed and used to sign, and not
	// be added, removed, exported or locked. The harness's SSH_AUTH_SOCK, and what
	// gpg takes for its agent's socket, have to exist.
	SSHAgent bool
	GPGAgent bool

	// Credentials are secrets that the tool can use and does not have.
	Credentials []Credential
	// Requests bounds what may be asked of hosts that Hosts allows, where the harness
	// sees the requests: in plain HTTP, and in HTTPS by ending it; see Credential.
	// A host that has a rule here is asked nothing that no rule of its allows.
	Requests []RequestRule

	// Lookup resolves the names of hosts. Nil: the harness's own resolver. What it
	// says is judged like any other answer: an address that is not the public
	// Internet's needs a rule of its own.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error) `json:"-"`
	// Authorities are certificates in PEM, of a private authority for instance, that
	// servers may be signed by beside the system's: the harness trusts them where
	// it ends TLS, and the tool finds them in its trust bundle. This is the text, not
	// a file's name.
	Authorities string

	// Decide is asked about a host that neither Hosts nor Deny names. Nil denies. No
	// answer opens an address that takes a rule of its own. Datagrams it is not asked about. The names that
	// it allows are counted (Limits.Names), as those below a "*" are; what it is asked is not.
	// It is called from many goroutines, at most Limits.Connections at one time. Its context ends with the run, and after
	// Patience; an answer that has not come by then is a denial.
	Decide func(ctx context.Context, r Request) Verdict `json:"-"`
	// Patience is how long Decide may take. Zero: 30 seconds.
	Patience time.Duration
	// Observe is told of every connection, and of every request that the harness
	// sees, allowed or denied, once it is over: by one goroutine of each run, in order.
	// Commands that run at the same time call it at the same time. What it is too slow
	// for is dropped, and counted in the report. With it alone, and nothing in Hosts,
	// the proxies exist and deny everything.
	Observe func(c Connection) `json:"-"`

	// Limits bounds what passes.
	Limits NetworkLimits

	// Capture takes the packets of programs that use no proxy. Nil: they reach
	// nothing. It takes a network namespace. It takes /dev/net/tun too; where that is
	// missing, or not the harness's to open, the proxies are what there is, and the
	// report says so.
	Capture Capture `json:"-"`
}

// NetworkLimits bounds what passes between one run's tool and the network, by the
// proxies, a Capture and Loopback. What reaches the tool otherwise does not count: sockets of
// Unix, the agents, of which 64 connections are served at one time, and [Cmd.DialInside].
//
// Whoever meets one is told so, and it is a [Violation] whose remedy names the field. A
// connection beyond Connections is refused, and may be tried again; one that is under
// way when Bytes have passed is ended.
type NetworkLimits struct {
	Connections int   // of the tool, open at one time, flows of datagrams among them; zero: 1024
	Bytes       int64 // both ways together, headers too, then everything is refused; zero: no limit
	Rate        int64 // bytes per second, both ways and all connections together; zero: no limit
	Names       int   // different names below one "*" rule, or by Decide's word alone, of which each tells a name server something; zero: 512
}

// A Request is what [Network.Decide] is asked about.
type Request struct {
	Host     string // canonical: a name, or an address
	Port     uint16
	Protocol string // "http", "https", "connect", "socks", with a capture "tcp" ...
	Method   string // "" where the harness does not see it
	Path     string
	Rule     string // which rule has left it open; "": none is about it
}

// A Verdict is the answer to a [Request]. The zero value denies.
type Verdict struct {
	Allow  bool
	Reason string // why not: the tool is told it, and so is the report
}

// A Connection is one connection of the tool's, or one request where the harness
// sees them, when it is over. As JSON it is one line of a log, with the names that a
// [Violation] has.
type Connection struct {
	Time     time.Time     `json:"time"`              // when it began
	Protocol string        `json:"protocol"`          // "http", "https", "connect", "socks", with a capture "tcp", "udp" ...
	Host     string        `json:"host"`              // canonical: a name, or an address
	Address  string        `json:"address,omitempty"` // what was dialled; "": nothing was
	Port     uint16        `json:"port,omitempty"`
	Method   string        `json:"method,omitempty"` // "" where the harness does not see it
	Path     string        `json:"path,omitempty"`   // without the query
	Allowed  bool          `json:"allowed"`          // and was not ended by a limit
	Rule     string        `json:"rule,omitempty"`   // which rule decided, or "Decide"; "": none is about it
	Reason   string        `json:"why,omitempty"`    // why it was denied, or which limit has ended it, in words
	Sent     int64         `json:"sent"`             // bytes from the tool
	Received int64         `json:"received"`         // bytes to the tool
	Duration time.Duration `json:"nanoseconds"`
	Err      string        `json:"err,omitempty"` // what went wrong with one that was allowed
}

// A Violation is something that a run's network denied it, an agent's filter and a
// capture included, as its [Report] lists it.
type Violation struct {
	Time     time.Time `json:"time"`
	Protocol string    `json:"protocol"` // "http", "https", "connect", "socks", with a capture "tcp", "udp" ...
	Host     string    `json:"host"`
	Address  string    `json:"address,omitempty"` // if that is what was denied
	Port     uint16    `json:"port,omitempty"`
	Method   string    `json:"method,omitempty"`
	Path     string    `json:"path,omitempty"`
	Rule     string    `json:"rule,omitempty"` // which rule decided, or "Decide"; "": no rule allows it
	Why      string    `json:"why"`
	// Remedy is what in the policy would allow it, or that nothing does. It is for a person:
	// the tool chose the host, and a program that follows remedies has no policy.
	Remedy string `json:"remedy"`
	// Count is how many denials there were by this rule and for this reason, of this host
	// and port by this protocol; the other fields tell of the first of them.
	Count int `json:"count"`
}
