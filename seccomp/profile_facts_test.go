package seccomp

import "testing"

// One fact a line, on both architectures: what Default and Strict do to a call, and on the other side what must still work.
func TestProfileFacts(t *testing.T) {
	eperm, enosys, afnosupport, protonosupport := Errno(EPERM), Errno(ENOSYS), Errno(EAFNOSUPPORT), Errno(EPROTONOSUPPORT)
	const high = 1 << 32 // a bit above those that the kernel looks at
	const nonblockCloexec = 0x80800
	type args = []uint64
	for _, fact := range []struct {
		what   string
		name   string
		args   args
		def    Action
		strict Action
	}{
		{"a local stream socket", "socket", args{1, 1, 0}, Allow, afnosupport},
		{"a local datagram socket", "socket", args{1, 2 | nonblockCloexec, 0}, Allow, afnosupport},
		{"a local packet socket", "socket", args{1, 5, 1}, Allow, afnosupport},
		{"a local socket of an odd protocol", "socket", args{1, 1, 2}, afnosupport, afnosupport},
		{"TCP", "socket", args{2, 1 | nonblockCloexec, 6}, Allow, afnosupport},
		{"TCP by default", "socket", args{2, 1, 0}, Allow, afnosupport},
		{"TCP over IPv6", "socket", args{10, 1, 6}, Allow, afnosupport},
		{"UDP", "socket", args{2, 2, 17}, Allow, afnosupport},
		{"UDP by default over IPv6", "socket", args{10, 2 | nonblockCloexec, 0}, Allow, afnosupport},
		{"MPTCP", "socket", args{2, 1, 262}, protonosupport, afnosupport},
		{"MPTCP over IPv6, non-blocking", "socket", args{10, 1 | nonblockCloexec, 262}, protonosupport, afnosupport},
		{"MPTCP with a high bit", "socket", args{2 | high, 1 | high, 262 | high}, protonosupport, afnosupport},
		{"SCTP", "socket", args{2, 1, 132}, protonosupport, afnosupport},
		{"SCTP by type", "socket", args{2, 5, 0}, protonosupport, afnosupport},
		{"UDP-Lite", "socket", args{2, 2, 136}, protonosupport, afnosupport},
		{"DCCP", "socket", args{2, 6, 33}, protonosupport, afnosupport},
		{"a ping socket", "socket", args{2, 2, 1}, protonosupport, afnosupport},
		{"TCP's protocol in a datagram socket", "socket", args{2, 2, 6}, protonosupport, afnosupport},
		{"a raw IP socket", "socket", args{2, 3, 255}, eperm, afnosupport},
		{"a raw ICMPv6 socket", "socket", args{10, 3 | nonblockCloexec, 58}, eperm, afnosupport},
		{"SOCK_PACKET, the old packet socket", "socket", args{2, 10, 0x300}, protonosupport, afnosupport},
		{"netlink as getifaddrs opens it", "socket", args{16, 3 | 0x80000, 0}, Allow, afnosupport},
		{"netlink, datagram", "socket", args{16, 2, 0}, Allow, afnosupport},
		{"netlink to the firewall", "socket", args{16, 3, 12}, protonosupport, afnosupport},
		{"netlink for kobject events", "socket", args{16, 2, 15}, protonosupport, afnosupport},
		{"netlink as a stream", "socket", args{16, 1, 0}, protonosupport, afnosupport},
		{"a packet socket", "socket", args{17, 3, 0x300}, afnosupport, afnosupport},
		{"a packet socket, datagram", "socket", args{17, 2, 0}, afnosupport, afnosupport},
		{"vsock", "socket", args{40, 1, 0}, afnosupport, afnosupport},
		{"vsock with a high bit", "socket", args{40 | high, 1, 0}, afnosupport, afnosupport},
		{"AF_ALG", "socket", args{38, 5, 0}, afnosupport, afnosupport},
		{"AF_KEY", "socket", args{15, 3, 2}, afnosupport, afnosupport},
		{"Bluetooth", "socket", args{31, 3, 1}, afnosupport, afnosupport},
		{"CAN", "socket", args{29, 3, 1}, afnosupport, afnosupport},
		{"TIPC", "socket", args{30, 5, 0}, afnosupport, afnosupport},
		{"XDP", "socket", args{44, 3, 0}, afnosupport, afnosupport},
		{"SMC, a TCP besides TCP", "socket", args{43, 1, 0}, afnosupport, afnosupport},
		{"no family", "socket", args{0, 1, 0}, afnosupport, afnosupport},
		{"a local family with a high bit is local", "socket", args{1 | high, 1, 0}, Allow, afnosupport},
		{"a local pair", "socketpair", args{1, 1, 0}, Allow, Allow},
		{"an IP pair", "socketpair", args{2, 1, 0}, afnosupport, afnosupport},
		{"a TIPC pair", "socketpair", args{30, 1, 0}, afnosupport, afnosupport},
		{"connect", "connect", nil, Allow, eperm},
		{"listen", "listen", nil, Allow, eperm},
		{"send on a descriptor", "sendmsg", nil, Allow, Allow},

		{"a thread as glibc makes it", "clone", args{0x3d0f00}, Allow, Allow},
		{"fork as glibc makes it", "clone", args{0x1200011}, Allow, Allow},
		{"vfork", "clone", args{0x4111}, Allow, Allow},
		{"a new mount namespace", "clone", args{0x00020000 | 17}, eperm, eperm},
		{"a new cgroup namespace", "clone", args{0x02000000 | 17}, eperm, eperm},
		{"a new uts namespace", "clone", args{0x04000000 | 17}, eperm, eperm},
		{"a new ipc namespace", "clone", args{0x08000000 | 17}, eperm, eperm},
		{"a new user namespace", "clone", args{0x10000000 | 17}, eperm, eperm},
		{"a new pid namespace", "clone", args{0x20000000 | 17}, eperm, eperm},
		{"a new network namespace", "clone", args{0x40000000 | 17}, eperm, eperm},
		{"a new user namespace with high bits", "clone", args{0xff10000011 | 1<<63}, eperm, eperm},
		{"clone3, so that libc falls back", "clone3", nil, enosys, enosys},
		{"unshare", "unshare", args{0x10000000}, eperm, eperm},
		{"unshare of nothing", "unshare", args{0}, eperm, eperm},
		{"setns", "setns", args{3, 0}, eperm, eperm},

		{"TIOCSTI", "ioctl", args{0, 0x5412}, eperm, eperm},
		{"TIOCSTI with high bits (CVE-2019-10063)", "ioctl", args{0, 0x5412 | high}, eperm, eperm},
		{"TIOCSTI, sign-extended", "ioctl", args{0, 0x5412 | 0xffffffff<<32}, eperm, eperm},
		{"TIOCLINUX", "ioctl", args{0, 0x541c}, eperm, eperm},
		{"TIOCLINUX with high bits", "ioctl", args{0, 0x541c | high}, eperm, eperm},
		{"TIOCSETD", "ioctl", args{0, 0x5423 | high}, eperm, eperm},
		{"TCGETS", "ioctl", args{0, 0x5401}, Allow, Allow},
		{"TIOCGWINSZ", "ioctl", args{0, 0x5413}, Allow, Allow},
		{"TIOCSCTTY", "ioctl", args{0, 0x540e}, Allow, Allow},
		{"TIOCSTI's number as descriptor", "ioctl", args{0x5412, 0x5401}, Allow, Allow},

		{"the ordinary personality", "personality", args{0}, Allow, eperm},
		{"asking for the personality", "personality", args{0xffffffff}, Allow, eperm},
		{"asking for it with -1 in 64 bits", "personality", args{1<<64 - 1}, Allow, eperm},
		{"no random layout", "personality", args{0x0040000}, Allow, eperm},
		{"no random layout, and data that can be executed", "personality", args{0x0440000}, eperm, eperm},
		{"no random layout of a 32-bit machine", "personality", args{0x0040008}, eperm, eperm},
		{"READ_IMPLIES_EXEC", "personality", args{0x0400000}, eperm, eperm},
		{"MMAP_PAGE_ZERO", "personality", args{0x0100000}, eperm, eperm},

		{"io_uring", "io_uring_setup", args{8}, enosys, enosys},
		{"io_uring's registrations", "io_uring_register", args{1<<64 - 1}, enosys, enosys},
		{"keyctl", "keyctl", args{0}, eperm, eperm},
		{"add_key", "add_key", nil, eperm, eperm},
		{"request_key", "request_key", nil, eperm, eperm},
		{"bpf", "bpf", nil, eperm, eperm},
		{"perf_event_open", "perf_event_open", nil, eperm, eperm},
		{"userfaultfd", "userfaultfd", nil, eperm, eperm},
		{"open_by_handle_at", "open_by_handle_at", nil, eperm, eperm},
		{"mount", "mount", nil, eperm, eperm},
		{"pivot_root", "pivot_root", nil, eperm, eperm},
		{"chroot", "chroot", nil, eperm, eperm},
		{"sethostname", "sethostname", nil, eperm, eperm},
		{"reboot", "reboot", nil, eperm, eperm},
		{"fanotify_init", "fanotify_init", nil, eperm, eperm},
		{"pidfd_getfd", "pidfd_getfd", nil, eperm, eperm},

		{"a debugger", "ptrace", args{16}, Allow, eperm},
		{"a debugger's reading", "process_vm_readv", nil, Allow, eperm},
		{"shared memory", "shmat", nil, Allow, eperm},
		{"a message queue", "mq_open", nil, Allow, eperm},
		{"a filter on top", "seccomp", args{1}, Allow, eperm},
		{"a filter on top by prctl", "prctl", args{22, 2}, Allow, eperm},
		{"a filter on top by prctl, with a high bit", "prctl", args{22 | high, 2}, Allow, eperm},
		{"the process's name", "prctl", args{15}, Allow, Allow},
		{"a ruleset on top", "landlock_create_ruleset", nil, Allow, eperm},
		{"openat2", "openat2", nil, Allow, Allow},
		{"close_range", "close_range", nil, Allow, Allow},
		{"execve", "execve", nil, Allow, Allow},
		{"setuid, which needs a capability", "setuid", nil, Allow, Allow},
		{"rseq", "rseq", nil, Allow, Allow},
		{"membarrier", "membarrier", nil, Allow, Allow},
		{"statx", "statx", nil, Allow, Allow},
		{"fchmodat2", "fchmodat2", nil, Allow, Allow},
		{"futex_waitv", "futex_waitv", nil, Allow, Allow},
		{"pidfd_open", "pidfd_open", nil, Allow, Allow},
		{"memfd_create", "memfd_create", nil, Allow, Allow},
		{"getrandom", "getrandom", nil, Allow, Allow},
	} {
		for _, a := range arches {
			c := mustCall(t, a, fact.name, fact.args...)
			if got := verdict(t, mustCompile(t, Default(), a), c); got != fact.def {
				t.Errorf("%s: default: %v: %v, want %v", fact.what, c, got, fact.def)
			}
			if got := verdict(t, mustCompile(t, Strict(), a), c); got != fact.strict {
				t.Errorf("%s: strict: %v: %v, want %v", fact.what, c, got, fact.strict)
			}
		}
	}
}

func TestASyscallNewerThanTheTableFailsWithENOSYSInEveryProfileButOff(t *testing.T) {
	for _, a := range arches {
		for _, f := range []Filter{Default(), Strict()} {
			p := mustCompile(t, f, a)
			for _, nr := range []uint32{472, 500, 1000, 0xffff, x32Bit - 1} {
				if got := verdict(t, p, Call{Arch: a, Nr: nr}); got != Errno(ENOSYS) {
					t.Errorf("%v %d: %v", a, nr, got)
				}
			}
		}
	}
	// On arm64 these are the numbers of 32-bit time64 calls, and of a place holder: no syscalls.
	p := mustCompile(t, Default(), ARM64)
	for _, nr := range []uint32{244, 403, 422, 423} {
		if got := verdict(t, p, Call{Arch: ARM64, Nr: nr}); got != Errno(ENOSYS) {
			t.Errorf("arm64 %d: %v", nr, got)
		}
	}
}
