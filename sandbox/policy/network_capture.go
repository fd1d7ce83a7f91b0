package policy

import (
	"context"
	"net"
	"net/netip"
	"os"
)

// A Capture serves the packets of programs that know no proxy: it is handed a
// TUN device, through which the tool's namespace routes everything, and the
// run's gate, which judges and makes the connections. It returns at once, and
// stop ends what it has begun and returns when that is over. It owns the device's
// file. Package capture has one; it is not linked unless a program names it.
type Capture func(tun *os.File, g CaptureGate) (stop func(), err error)

// A CaptureGate is what a [Capture] has of its run. Its functions are safe for
// concurrent use.
type CaptureGate struct {
	// Allowed says whether a connection to host, a name or an address, may be tried.
	// Port 0 asks whether it may be to any port at all: a DNS server's question. It
	// does not call [Network.Decide] and leaves no event, so a name that only Decide could
	// allow counts as allowed, and for port 0 so does one that datagrams may be sent to.
	Allowed func(host string, port uint16) bool
	// Datagrams is Allowed for datagrams, which [Network.UDP] grants. Decide is not
	// asked about them.
	Datagrams func(host string, port uint16) bool
	// Tunnel judges the target, dials it and copies both ways until the end. It
	// closes conn. The tool hears of a denial by the connection's end.
	//
	// With the protocol "udp" each Read and Write of conn is one datagram, and the end
	// comes, with a nil error, when none has passed for a while. A conn that has a
	// WriteTo is read by it, and Unreachable(), if conn has that method, is called when the
	// target's host answers that the port is closed.
	Tunnel func(ctx context.Context, conn net.Conn, host string, port uint16, protocol string) error
	// Denied notes that something was refused: a datagram, a name.
	Denied func(protocol, host string, port uint16, why string)
	// Why says, in words, why Allowed is false for a host. Nil: unknown. A denial that is noted
	// with these words names its rule in the report.
	Why func(host string, port uint16) string

	// Address is the device's address inside and the network around it, of which
	// the other addresses are the capture's to give to names.
	Address netip.Prefix
	MTU     int

	// DNS and DNSStreams are sockets on the tool's loopback at which its resolver may
	// ask. Questions to other servers arrive by the device. The capture closes them.
	DNS        []net.PacketConn
	DNSStreams []net.Listener
}
