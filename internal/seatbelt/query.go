package seatbelt

// A Query is one thing that a process could try. What the operation's table
// entry does not need may stay empty.
type Query struct {
	Operation string // concrete ("file-read-data"); a wildcard is asked by its own rules

	// Path is the resolved path: absolute, clean, no symlink in it. For a
	// connection it is the unix socket's.
	Path string

	// Alias is another name of what Path names, which the filters of paths match as
	// well: "/private/tmp/a" on a system where "/tmp/a" is that. Empty: no other name.
	Alias string

	// Address is "ip:port" or "host:port": of the remote end for network-outbound, of
	// the local end for network-bind and network-inbound.
	Address string

	// Peer is the other end's address: local for network-outbound, remote for network-inbound.
	// Empty is not known.
	Peer string

	Protocol   string            // tcp, udp, unix, ip; "" is unix with a Path and tcp with an Address
	Name       string            // of a mach service, sysctl, POSIX IPC object, IOKit class, preference domain ...
	Target     string            // self, same-sandbox, children, pgrp, others; "" is others
	VnodeType  string            // REGULAR-FILE, DIRECTORY, SYMLINK, SOCKET, FIFO, CHARACTER-DEVICE, BLOCK-DEVICE, TTY
	Extensions []string          // classes of the extensions that the process holds for the path
	Attributes map[string]string // by the filter's kind: "socket-domain": "AF_SYSTEM"
}

// A Verdict is the answer to a Query.
type Verdict struct {
	Allow bool

	// Rule decided; nil: none did, and the default of a profile without a rule for
	// default is to deny.
	Rule *Rule

	// Operation is the name by which Rule applied: the asked one, or a wildcard
	// above it, or "default".
	Operation string

	// Step is which step of the precedence decided: 1, the concrete operation's rule
	// stood against a parent's that says the opposite; 2, an unfiltered rule of the operation
	// or a filtered one against an unfiltered that says the opposite; 3, the last
	// match among the operation's filtered rules; 4, the operation had no answer and
	// a parent had. 0: the query itself was refused.
	Step int

	// Why is the reason in a sentence.
	Why string

	// LastMatch is the rule that a reader of "the last match wins" would have taken, if
	// that one says the opposite; nil: both agree.
	LastMatch *Rule
}

// asked is a query under way, with what was done for it.
type asked struct {
	Query
	proto string
	work  int // entries and filters that were looked at
}
