package proxy

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Protocol is the protocol of a listener's clients.
type Protocol string

// The protocols of Serve.
const (
	HTTP  Protocol = "http"  // an HTTP proxy: absolute-form and CONNECT
	SOCKS Protocol = "socks" // SOCKS5: CONNECT only
)

// A Denied is the first denial of a kind: by one rule and for one reason, of one host and
// port by one protocol.
type Denied struct {
	policy.Connection
	Count int // how many there were
}

// A Config is the policy's network, and what this run and host add to it. The zero Config lets nothing through.
type Config struct {
	// Network says what is let through. Policy.Validate has found it sound; New checks only what takes knowledge of
	// HTTP. Without Limits.Connections an eighth of the files that the process may have open bounds them too: a tunnel
	// takes two, and four more for pipes while it moves much. Without Lookup /etc/hosts is asked, then
	// net.DefaultResolver, without search domains.
	policy.Network

	// Key is the password that clients have to give, by Proxy-Authorization or in
	// the SOCKS handshake; the user's name does not matter. "": none is asked
	// for, which is right where only the sandbox can reach the listeners.
	Key string
	// Dial connects to an address that was checked. Nil: a net.Dialer over TCP.
	// A connection that is no syscall.Conn is used for one HTTP request: what has come on it since cannot be seen.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// DialUDP connects a socket for datagrams to an address that was checked. Nil: a
	// net.Dialer over UDP.
	DialUDP func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Inside connects to an address of the loopback of the tool, which has a network namespace. What clients call
	// localhost, or Hostname, leads there, unless an entry names it. Nil: these are the harness's, and refused.
	Inside   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	Hostname string
	// Sockets returns the directory of proc_pid_net(5) of the clients' network. Nil: it is this process's.
	Sockets func() string
	// Roots verify the real server where TLS is intercepted. Nil: the system's.
	Roots *x509.CertPool
	// Compiled is what Compile has made of the same Config. Nil: New makes one.
	Compiled *Compiled
	// Scope has its placeholders for credentials: they are the same for all proxies of a process with the same scope.
	Scope string
	// Memory has the verdicts of Decide that last for the sandbox. Nil: this proxy's own.
	Memory *callback.Memory
	// Denied is told the first denial of each kind, and Asked each question to Decide: with a verdict, of the answer. Neither
	// waits for anything. Nil: they are not told.
	Denied func(policy.Connection)
	Asked  func(policy.Request, *policy.Verdict)
	// Route says where the kernel takes what is sent to an address. Nil: the kernel is asked.
	Route func(netip.Addr) hostrules.Route
}

// A Reached is a host and port to which connections or requests were allowed.
type Reached struct {
	Host  string
	Port  uint16
	Count int
}

// A Summary counts the events of a proxy so far.
type Summary struct {
	Reached    []Reached         // the first hundred
	Elsewhere  int               // allowed connections that Reached has no room for
	Notes      []string          // what was changed of requests, the first of each kind
	Violations []Denied          // the first denial of each kind; the last place has the most recent kind
	Beyond     int               // denials that Violations has no room for
	Stuck      bool              // Close has waited for the proxy's goroutines as long as it does, and some have not ended
	Unobserved int               // events that Observe was too slow for
	Failed     int               // of those that were allowed: an unknown name, an invalid certificate
	LastFailed policy.Connection // the last of them
	Allowed    int
	Denied     int
	Sent       int64
	Received   int64
}

// A ConfigError says which entry of a Config's list cannot be carried out.
type ConfigError struct {
	List  string // "credential" or "request rule"
	Index int
	Name  string // the variable, or the host
	Err   error
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s %d (%.80q): %v", e.List, e.Index, e.Name, e.Err)
}

func (e *ConfigError) Unwrap() error { return e.Err }
