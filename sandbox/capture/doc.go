// Package capture carries the connections of tools that know no proxy.
//
//	p := sandbox.WorkspaceNet(dir, "example.com:443")
//	p.Network.Capture = capture.Netstack
//
// It is a package of its own because it links a network stack: a program that does
// not name it is smaller by what the stack is.
//
// # One connection's way
//
// The tool's namespace has one way out, a TUN device, and the harness has the
// device's descriptor. Nobody routes what comes out of it:
//
//   - A datagram that the policy grants ([sandbox.Network.UDP]) is of a flow
//     (flows_linux.go), which all have that are from one address and port of the tool's
//     to one other. Its first is judged by [sandbox.CaptureGate] as a SYN is, while more
//     may wait, and what the peer answers comes from where the tool has sent. If
//     nobody is there the tool hears that by ICMP, as from the peer itself.
//   - A question to a DNS server, whatever server it is for, by UDP or TCP, is
//     answered here (dns.go), but for datagrams to a server that the policy grants. An allowed name has an address of the device's network
//     that stands for it alone, until the run ends (names.go). A denied one does not
//     exist, which is the one answer that every client takes as its last; the reason
//     goes with it where the client can read one (RFC 8914). No question is ever
//     passed on. There are no IPv6 addresses for names.
//   - A SYN waits (conn_linux.go) while [sandbox.CaptureGate] judges its target, the
//     name that its address stands for, or the address itself, and connects to it. It
//     is answered when that is done, and else reset: a tool sees ECONNREFUSED, as from
//     a port at which nobody listens.
//   - Every other packet is refused by an ICMP message (reply.go): port unreachable
//     for UDP, so that what speaks QUIC goes on by TCP, and "prohibited" for the rest,
//     an echo among it. Fragments, and what is for more than one host, are dropped.
//
// What is refused is told of once, by [sandbox.CaptureGate]'s Denied.
//
// gVisor's stack gets TCP alone, of whole packets from one host to one host; the
// rest is decided on the packet's bytes (packet.go), datagrams included: there is
// nothing in UDP that takes a stack, and a table of flows is easier to bound.
//
// # Bounds
//
// A run has at most 1,024 connections, those counted whose last bytes the tool has
// not read yet, for 20 seconds; 256 of them may be waiting for an answer to their
// SYN, and further ones wait for a place. The first 32 have 1 MiB each way, further
// ones 64 KiB: some 200 MiB when a tool reads from none of 1,024 that are sent to.
// 4,096 names have an address; 1,024 denials are told of.
//
// It has at most 512 flows of datagrams, of which each may have 64 waiting, and all
// together 8 MiB of them; further ones are lost, and a further flow is refused.
//
// # Limits
//
// Names are bound to addresses of one run: what a tool writes down for later is of no
// use. What a tool asks of a name, other than its IPv4 address, has an empty answer:
// no MX, no TXT, no SRV. A datagram has to fit into one of the device's packets (65,492
// bytes; 65,472 over IPv6): fragments are dropped. On its way to the server the host's kernel
// makes fragments where it has to, whatever the tool has said of that. ICMP is not passed,
// but for the one message. The stack runs in the harness's
// own process: it is memory-safe code, but a panic in it would be the harness's; a
// tool without capabilities sends it nothing but what the kernel makes.
//
// On other systems than Linux, [Netstack] returns an error that wraps
// errors.ErrUnsupported.
package capture
