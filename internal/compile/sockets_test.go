package compile

import (
	"testing"

	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestOnlyStreamsOfTCPAreLeft runs the rules in the default profile, as a kernel
// would, for both architectures.
func TestOnlyStreamsOfTCPAreLeft(t *testing.T) {
	const (
		stream, dgram, raw, rdm, seqpacket, dccp, packet = 1, 2, 3, 4, 5, 6, 10
		flags                                            = 0x80000 | 0x800 // SOCK_CLOEXEC, SOCK_NONBLOCK
		noSignal, dontWait                               = 0x4000, 0x40
	)
	refused := seccomp.Errno(errAccess)
	tests := []struct {
		name string
		call string
		args []uint64
		want seccomp.Action
	}{
		{"a stream of IPv4", "socket", []uint64{familyInet, stream, 0}, seccomp.Allow},
		{"a stream of IPv6 that says TCP", "socket", []uint64{familyInet6, stream | flags, protocolTCP}, seccomp.Allow},
		{"a stream, with bits that the kernel does not look at", "socket", []uint64{1<<32 | familyInet, stream, 0}, seccomp.Allow},
		{"datagrams", "socket", []uint64{familyInet, dgram, 0}, refused},
		{"datagrams of IPv6", "socket", []uint64{familyInet6, dgram | flags, 17}, refused},
		{"ICMP by datagrams", "socket", []uint64{familyInet, dgram, 1}, refused},
		{"raw packets", "socket", []uint64{familyInet, raw, 1}, refused},
		{"reliable datagrams", "socket", []uint64{familyInet, rdm, 0}, refused},
		{"packets in sequence, SCTP's", "socket", []uint64{familyInet, seqpacket, 132}, refused},
		{"DCCP", "socket", []uint64{familyInet, dccp, 33}, refused},
		{"type 0", "socket", []uint64{familyInet, 0, 0}, refused},
		{"type 9", "socket", []uint64{familyInet, 9, 0}, refused},
		{"packets of the old kind", "socket", []uint64{familyInet, packet, 0}, refused},
		{"Multipath TCP", "socket", []uint64{familyInet, stream, 262}, refused},
		{"a stream of SCTP", "socket", []uint64{familyInet6, stream, 132}, refused},
		{"a stream of SMC", "socket", []uint64{familyInet, stream, 256}, refused},
		{"another protocol with bits above", "socket", []uint64{familyInet, stream, 1<<32 | 262}, refused},
		{"a local socket", "socket", []uint64{familyUnix, stream | flags, 0}, seccomp.Allow},
		{"a local socket of packets", "socket", []uint64{familyUnix, seqpacket, 0}, seccomp.Allow},
		{"a local socket of datagrams", "socket", []uint64{familyUnix, dgram | flags, 0}, refused},
		{"the same by another name, raw", "socket", []uint64{familyUnix, raw, 0}, refused},
		{"packets in sequence of IPv6", "socket", []uint64{familyInet6, seqpacket, 0}, refused},
		{"netlink to ask for interfaces, which is the supervisor's", "socket", []uint64{familyNetlink, raw | flags, 0}, seccomp.Allow},
		{"the same by datagrams", "socket", []uint64{familyNetlink, dgram, 0}, seccomp.Allow},
		{"netlink by reliable datagrams", "socket", []uint64{familyNetlink, rdm, 0}, refused},
		{"netlink to IPsec, whose number is TCP's", "socket", []uint64{familyNetlink, raw, protocolTCP}, refused},
		{"netlink to the audit system", "socket", []uint64{familyNetlink, raw, 9}, refused},
		{"vsock", "socket", []uint64{40, stream, 0}, refused},
		{"SMC's own family", "socket", []uint64{43, stream, 0}, refused},
		{"no family", "socket", []uint64{0, stream, 0}, refused},
		{"a pair of local streams", "socketpair", []uint64{1, stream | flags, 0}, seccomp.Allow},
		{"a pair of datagram sockets", "socketpair", []uint64{1, dgram | flags, 0}, refused},
		{"the same by another name", "socketpair", []uint64{1, raw, 0}, refused},
		{"sending", "sendto", []uint64{3, 0, 0, noSignal | dontWait, 0, 0}, seccomp.Allow},
		{"sending to an address with Fast Open", "sendto", []uint64{3, 0, 0, flagFastOpen | noSignal, 0, 0}, refused},
		{"the same with bits above", "sendto", []uint64{3, 0, 0, 1<<40 | flagFastOpen, 0, 0}, refused},
		{"sending a message", "sendmsg", []uint64{3, 0, noSignal}, seccomp.Allow},
		{"a message with Fast Open", "sendmsg", []uint64{3, 0, flagFastOpen}, refused},
		{"messages with Fast Open", "sendmmsg", []uint64{3, 0, 1, flagFastOpen}, refused},
		{"a server's address, which is the supervisor's", "bind", []uint64{3, 0, 16}, seccomp.Allow},
		{"to stop the kernel in the middle of a copy", "userfaultfd", []uint64{1}, refused},
		{"a ring", "io_uring_setup", []uint64{8, 0}, refused},
		{"a connection, which is the supervisor's", "connect", []uint64{3, 0, 16}, seccomp.Allow},
	}
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		for profileName, profile := range map[string]seccomp.Filter{"the default profile": seccomp.Default(), "a profile that allows all": {Default: seccomp.Allow, Unknown: seccomp.Errno(errNoSys)}} {
			program, err := profile.With(Streams(true)...).Compile(arch)
			if err != nil {
				t.Fatal(err)
			}
			for _, test := range tests {
				call, err := seccomp.NewCall(arch, test.call, test.args...)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := program.Evaluate(call); err != nil || got != test.want {
					t.Errorf("%v, %s, %s: %v, want %v, %v", arch, profileName, test.name, got, test.want, err)
				}
			}
		}
	}
}

// TestWhatNoNamespaceHoldsIsRefusedByEveryProfile: vsock by its number, and keys that
// the kernel asks a program for, which it does if a pointer is not nil.
func TestWhatNoNamespaceHoldsIsRefusedByEveryProfile(t *testing.T) {
	tests := []struct {
		name string
		call string
		args []uint64
		want seccomp.Action
	}{
		{"vsock", "socket", []uint64{familyVsock, 1, 0}, seccomp.Errno(errNoFamily)},
		{"vsock with bits above", "socket", []uint64{1<<32 | familyVsock, 1, 0}, seccomp.Errno(errNoFamily)},
		{"another family", "socket", []uint64{familyInet, 1, 0}, seccomp.Allow},
		{"a key that is there", "request_key", []uint64{1 << 20, 1 << 20, 0, 0}, seccomp.Allow},
		{"a key to be found", "request_key", []uint64{1 << 20, 1 << 20, 1 << 20, 0}, seccomp.Errno(errPerm)},
		{"a key to be found, from above 4 GiB", "request_key", []uint64{1 << 20, 1 << 20, 1 << 32, 0}, seccomp.Errno(errPerm)},
	}
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		program, err := seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Errno(errNoSys)}.With(denyHostSockets...).Compile(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range tests {
			call, err := seccomp.NewCall(arch, test.call, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := program.Evaluate(call); err != nil || got != test.want {
				t.Errorf("%v, %s: %v, want %v, %v", arch, test.name, got, test.want, err)
			}
		}
	}
}
