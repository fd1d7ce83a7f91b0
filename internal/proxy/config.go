package proxy

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// A Protocol is the protocol of a listener's clients.
type Protocol string

// The protocols of Serve.
const (
	HTTP  Protocol = "http"  // an HTTP proxy: absolute-form and CONNECT
	SOCKS Protocol = "socks" // SOCKS5: CONNECT only
)

// A Target is where a connection wants to go.
type Target struct {
	Host     hostrules.Host
	Port     uint16
	Protocol string // for the event: "connect", "socks", "tcp" ...
}

// A Request is the question that Decide answers.
type Request struct {
	Host     string // canonical
	Port     uint16
	Protocol string // "http", "connect", "socks" ...
	Method   string // of a plain HTTP request; else ""
	Path     string
	Rule     string // the entry that asks; "": no entry matches the host
}

// A Verdict answers a Request. The zero Verdict denies.
type Verdict struct {
	Allow  bool
	Reason string // for the event, and for the client when denied
}

// An Event tells of one connection, or of one HTTP request, at its end.
type Event struct {
	Time     time.Time // of its beginning
	Protocol string    // "http", "https", "connect", "socks", "forward" ...
	Host     string    // canonical; quoted client input if it is not a valid host
	Address  string    // that was dialled, with the port; "": none was
	Port     uint16
	Method   string // of an HTTP request
	Path     string
	Allowed  bool   // and was not ended by a limit
	Rule     string // the entry that decided
	Reason   string // why it was denied, or which limit has ended it
	Sent     int64  // bytes from the sandbox; of an HTTP request its body's
	Received int64  // bytes to the sandbox
	Duration time.Duration
	Err      string // why it failed although it was allowed
}

// A Denied is the first denial of a kind: by one rule and for one reason, of one host and
// port by one protocol.
type Denied struct {
	Event
	Count int // how many there were
}

// Limits bounds what one proxy carries. The package's documentation says what counts.
type Limits struct {
	// Connections is how many of clients may be open at once. 0: 1024, or an eighth of the
	// files that the process may have open if that is less: a tunnel takes two, and four
	// more for pipes while it moves much.
	Connections int
	// Bytes is how many pass in all, both ways together. 0: no limit.
	Bytes int64
	// Rate is how many bytes pass in a second, both ways and all connections
	// together. 0: no limit.
	Rate int64
	// Names is how many distinct names below one wildcard, or by Decide's word
	// alone, may be looked up, which bounds what can be told to a name server by
	// asking it. 0: 512.
	Names int
}

// A Credential is a secret that is put into requests to some hosts on the way out,
// over TLS, in the place of a placeholder. It prints and encodes itself without
// the secret; a type converted from it does not. Entries of one Name are several
// places for one secret.
type Credential struct {
	Name   string   // the environment variable that holds the placeholder
	Secret string   // what the placeholder becomes: 8 to 4096 bytes that a header can hold
	Hosts  []string // entries as in Compile's allow-list, but for "*"
	Place  string   // "bearer", "basic", "header", "query"
	Field  string   // the header's or the parameter's name; the user's name for "basic"
}

// A RequestRule says which requests may be made to a host whose requests can be
// read: plain HTTP, or TLS that is intercepted.
type RequestRule struct {
	Host    string   // an entry as in Compile's allow-list
	Methods []string // empty: every method
	Paths   []string // prefixes; empty: every path
	Headers []string // that pass beside those which are known to change neither
}

// A Config says what a Proxy lets through. The zero Config lets nothing.
type Config struct {
	// Rules are asked first.
	Rules hostrules.Rules
	// Datagrams decide about UDP. Neither Rules nor Decide are asked about it.
	Datagrams hostrules.Datagrams
	// Decide is asked about hosts that no entry matches. Its context ends after
	// Patience and with the proxy; then, and when it panics, the answer is no.
	// Nil: no. It may be called from several goroutines at once.
	Decide func(context.Context, Request) Verdict
	// Patience is how long Decide may take. 0: 30 seconds.
	Patience time.Duration
	// Observe is called with every event, from one goroutine, in order. While it is
	// slow events are queued, then dropped and counted. Nil: events are only summarised.
	Observe func(Event)
	// Limits bound connections, bytes, rate and names.
	Limits Limits
	// Credentials are put into requests on the way out.
	Credentials []Credential
	// Requests judge requests by method and path.
	Requests []RequestRule
	// Key is the password that clients have to give, by Proxy-Authorization or in
	// the SOCKS handshake; the user's name does not matter. "": none is asked
	// for, which is right where only the sandbox can reach the listeners.
	Key string
	// Lookup resolves a name. Nil: /etc/hosts, then net.DefaultResolver, without search domains.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that was checked. Nil: a net.Dialer over TCP.
	// A connection that is no syscall.Conn is used for one HTTP request: what has come on it since cannot be seen.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// DialUDP connects a socket for datagrams to an address that was checked. Nil: a
	// net.Dialer over UDP.
	DialUDP func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Roots verify the real server where TLS is intercepted. Nil: the system's.
	Roots *x509.CertPool
	// Authorities are further ones, in PEM, that both the harness and the tool
	// trust: they join Roots and the bundle.
	Authorities []byte
	// Trust is what NewTrust has made of the same Config. Nil: New makes one.
	Trust *Trust
	// Route says where the kernel takes what is sent to an address. Nil: the kernel is asked.
	Route func(netip.Addr) hostrules.Route
}

// A Summary counts the events of a proxy so far.
type Summary struct {
	Violations []Denied // the first denial of each kind; the last place has the most recent kind
	Beyond     int      // denials that Violations has no room for
	Stuck      bool     // Close has waited for the proxy's goroutines as long as it does, and some have not ended
	Unobserved int      // events that Observe was too slow for
	Failed     int      // of those that were allowed: an unknown name, an invalid certificate
	LastFailed Event    // the last of them
	Allowed    int
	Denied     int
	Sent       int64
	Received   int64
}
