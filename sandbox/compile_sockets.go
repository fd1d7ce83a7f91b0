package sandbox

import "github.com/holdfast-dev/holdfast/seccomp"

// Families, protocols and flags of Linux's sockets, the same on every architecture.
const (
	familyInet  = 2
	familyInet6 = 10
	protocolTCP = 6
	msgFastOpen = 0x20000000

	errProtocol     = 93 // EPROTONOSUPPORT
	errNotSupported = 95 // EOPNOTSUPP
)

// onlyStreams takes the place of a network namespace where the tool may use the
// harness's proxies: it leaves the tool sockets of TCP and nothing else that reaches
// beyond the sandbox. Where those connect to is for the guard to say, which carries
// connect(2) out, since no filter sees an address; so whatever else connects is
// refused here: data sent to an address with Fast Open (sendto(2) and its like), and a
// ring, whose calls no filter sees. Without a namespace a server would be the
// host's, and listen(2) needs no bind(2) before it: both are refused. Multipath TCP,
// SCTP and SMC are protocols of the same families and the same type of socket, and
// go by other rules than TCP's. Unconnected local sockets reach the host's daemons; a pair of datagram sockets
// can be connected anew (see noSockets).
var onlyStreams = append([]seccomp.Rule{
	{Names: []string{"socket"}, Action: seccomp.Errno(errAccess), Args: []seccomp.Arg{
		{Index: 0, Op: seccomp.NotEqual, Value: familyInet}, {Index: 0, Op: seccomp.NotEqual, Value: familyInet6}},
		Reason: "without a network namespace every other socket than TCP's reaches the host"},
	notStream(1, 0), notStream(2, 2), notStream(4, 4), notStream(8, 8),
	{Names: []string{"socket"}, Action: seccomp.Errno(errProtocol), Args: []seccomp.Arg{
		{Index: 2, Op: seccomp.NotEqual, Value: 0}, {Index: 2, Op: seccomp.NotEqual, Value: protocolTCP}},
		Reason: "a stream by another protocol than TCP"},
	fastOpen("sendto", 3), fastOpen("sendmsg", 2), fastOpen("sendmmsg", 3),
	{Names: []string{"bind", "listen"}, Action: seccomp.Errno(errAccess), Reason: "without a network namespace a server would be the host's"},
	{Names: []string{"io_uring_setup"}, Action: seccomp.Errno(errAccess), Reason: "a ring makes and connects sockets that no filter sees"},
}, noSockets[1:]...)

// notStream refuses types of socket whose bits under mask have that value: of
// SOCK_STREAM, 1, they do not. The bits above are flags (socket(2)).
func notStream(mask, value uint64) seccomp.Rule {
	return seccomp.Rule{Names: []string{"socket"}, Action: seccomp.Errno(errAccess), Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: mask, Value: value}},
		Reason: "without a network namespace every other socket than TCP's reaches the host"}
}

func fastOpen(name string, flags uint8) seccomp.Rule {
	return seccomp.Rule{Names: []string{name}, Action: seccomp.Errno(errNotSupported), Args: []seccomp.Arg{{Index: flags, Op: seccomp.MaskedEqual, Mask: msgFastOpen, Value: msgFastOpen}},
		Reason: "it connects to the address that the data is for, which the guard does not see"}
}
