// Package capture carries the connections of tools that know no proxy.
//
//	p := sandbox.WorkspaceNet(dir, "example.com:443")
//	p.Network.Capture = capture.Netstack
//
// It is a package of its own because it links a network stack (gVisor's): a program that
// does not import it is smaller by 3.6 MB.
//
// # What happens to a packet
//
// The tool's namespace has one way out, a TUN device, and the harness has the
// device's descriptor. No packet that comes out of it is routed:
//
//   - A datagram that the policy grants ([sandbox.Network.UDP]) belongs to a
//     flow: all datagrams from one address and port of the tool to one other. The first
//     one is judged by [policy.CaptureGate] as a SYN is, while further ones wait. Answers
//     come from the address that the tool has sent to. If no socket is open at the
//     peer's port, the tool receives the ICMP message as from the peer itself.
//   - A question to a DNS server, whatever server it is for, by UDP or TCP, is
//     answered here, but for datagrams to a server that the policy grants. An allowed name
//     gets an address of the device's network that stands for it alone, until the run
//     ends. A denied name gets NXDOMAIN, the one answer after which every client stops;
//     the reason goes with it where the client can read one (RFC 8914). No question is
//     passed on. There are no IPv6 addresses for names.
//   - A SYN waits while [policy.CaptureGate] judges its target, the
//     name that its address stands for, or the address itself, and connects to it. It
//     is answered when that is done, and otherwise reset: the tool sees ECONNREFUSED, as from
//     a port without a listener.
//   - Every other packet is refused by an ICMP message: port unreachable
//     for UDP, so that what speaks QUIC goes on by TCP, and "prohibited" for the rest,
//     an echo among it. Fragments, and what is for more than one host, are dropped.
//
// Each refusal is reported once, by [policy.CaptureGate]'s Denied.
//
// gVisor's stack gets TCP only, in whole packets from one host to one host. All
// else, datagrams included, is decided on the packet's bytes: UDP needs no stack,
// and a table of flows is easier to bound.
//
// # Bounds
//
// A run has at most 1,024 connections, those counted whose last bytes the tool has
// not read yet, for 20 seconds; 256 of them may be waiting for an answer to their
// SYN, and further ones wait for a place. The first 32 have 1 MiB each way, further
// ones 64 KiB: some 200 MiB when a tool reads from none of 1,024 that are sent to.
// 4,096 names have an address; 1,024 denials are reported.
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
