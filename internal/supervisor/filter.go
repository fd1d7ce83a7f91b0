package supervisor

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// SockFilter is one instruction of a classic BPF program, laid out as the kernel's struct sock_filter.
type SockFilter struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

// ErrArch is wrapped by Filter's error for an architecture it has no table for.
var ErrArch = errors.New("supervisor: no system call table")

// linux/bpf_common.h, linux/seccomp.h, linux/audit.h.
const (
	bpfLoad  = 0x20 // LD|W|ABS
	bpfEqual = 0x15 // JMP|JEQ|K
	bpfSet   = 0x45 // JMP|JSET|K
	bpfOver  = 0x35 // JMP|JGE|K
	bpfMask  = 0x54 // ALU|AND|K
	bpfRet   = 0x06

	retKill   = 0x80000000
	retNotify = 0x7fc00000
	retErrno  = 0x00050000
	retAllow  = 0x7fff0000

	dataNR   = 0
	dataArch = 4
	dataArgs = 16 // low word of args[0]: both architectures are little-endian

	auditAMD64 = 0xc000003e
	auditARM64 = 0xc00000b7

	x32Bit = 0x40000000

	openWrites = 0x1 | 0x2 | 0x40 | 0x200 // O_WRONLY, O_RDWR, O_CREAT, O_TRUNC; O_TMPFILE wants one of the first two
	openPath   = 0x200000                 // O_PATH: the kernel drops every flag that could write

	errnoPerm = 1
	errnoSys  = 38
	errnoNot  = 95 // EOPNOTSUPP

	statEmptyPath = 0x1000 // AT_EMPTY_PATH

	afUnix, afInet, afInet6, afNetlink, sockStream, sockKinds = 1, 2, 10, 16, 1, 0xf // AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, SOCK_STREAM and SOCK_TYPE_MASK

	prSetDumpable = 4

	ptraceOldSetOptions = 21
	ptraceSetOptions    = 0x4200
	ptraceSeize         = 0x4206
	ptraceTraceExit     = 0x40 // PTRACE_O_TRACEEXIT
)

// Filter returns the program that sends the calls which change names, and opens that can write, to the
// listener. With hidden set it sends every open that can read. It answers nothing by allow that another
// filter refuses: the kernel takes the strictest answer, and an errno is stricter than a notification.
// The architecture is "amd64" or "arm64".
func Filter(arch string, hidden bool) ([]SockFilter, error) {
	return filter(arch, Rules{Names: make([]protected.Pattern, 1)}, hidden)
}

// ListenerFlags are those of seccomp(2) with which the filter is loaded: SECCOMP_FILTER_FLAG_NEW_LISTENER and SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19).
const ListenerFlags = 1<<3 | 1<<5

// FilterOf returns the program for these rules: with names, hidden names or paths in them what
// Filter returns, with Connects also what sends connect(2) to the listener and refuses the
// socket options that could lead past it; with Watch what sends what is watched as well.
func FilterOf(arch string, r *Rules) ([]SockFilter, error) {
	return filter(arch, *r, HidesNames(r))
}

func filter(arch string, r Rules, hidden bool) ([]SockFilter, error) {
	t, ok := tables[arch]
	if !ok {
		return nil, errors.Join(ErrArch, errors.New(arch))
	}
	p := []SockFilter{
		{bpfLoad, 0, 0, dataArch},
		{bpfEqual, 1, 0, t.audit},
		{bpfRet, 0, 0, retKill},
		{bpfLoad, 0, 0, dataNR},
	}
	if t.audit == auditAMD64 {
		p = append(p, SockFilter{bpfOver, 0, 1, x32Bit}, SockFilter{bpfRet, 0, 0, retKill})
	}
	if r.Connects != nil {
		p = append(p, connectRules(t)...)
	}
	if r.Watch {
		p = append(p, watchRules(t, r.holdsNames())...)
	}
	if r.holdsNames() {
		p = append(p, nameRules(t, hidden || r.Watch)...)
		if !r.FreeBinds && r.Connects == nil {
			p = append(p, notify([]uint32{t.bind})...)
		}
	}
	if r.Fence {
		p = append(p, notify(t.fence)...)
	}
	p = append(p, traceRules(t)...)
	p = append(p,
		SockFilter{bpfEqual, 0, 5, t.prctl}, // prctl(PR_SET_DUMPABLE, 0) says yes and does nothing: see doc.go
		SockFilter{bpfLoad, 0, 0, dataArgs},
		SockFilter{bpfEqual, 0, 3, prSetDumpable},
		SockFilter{bpfLoad, 0, 0, dataArgs + 8},
		SockFilter{bpfEqual, 0, 1, 0},
		SockFilter{bpfRet, 0, 0, retErrno},
		SockFilter{bpfRet, 0, 0, retAllow})
	return p, nil
}

func notify(calls []uint32) (p []SockFilter) {
	for _, nr := range calls {
		p = append(p, SockFilter{bpfEqual, 0, 1, nr}, SockFilter{bpfRet, 0, 0, retNotify})
	}
	return p
}

func nameRules(t table, hidden bool) []SockFilter {
	p := notify(t.notify)
	for _, o := range t.opens {
		p = append(p, openRule(o, hidden)...)
	}
	for _, e := range t.errno {
		p = append(p, SockFilter{bpfEqual, 0, 1, e.nr}, SockFilter{bpfRet, 0, 0, retErrno | e.errno})
	}
	return p
}

// connectRules traps connect(2), bind(2), listen(2) and the socket(2) of TCP, UNIX and netlink, since the supervisor connects and binds sockets that it has made itself, and looks at the level and the name of a socket option. IP_OPTIONS holds a source route,
// by which a packet leaves for another address than the socket's (tcp_v4_connect); a socket that is bound to a device
// has its packets sent by that, those for 127.0.0.1 too (ip_route_output_key_hash_rcu), to any host that takes them; TCP_FASTOPEN_CONNECT
// puts the connection off until data is sent. Setting SO_SNDTIMEO, SO_LINGER or SO_REUSEPORT says yes and does nothing: the first is the
// supervisor's, by the second the supervisor would wait when it is the last who closes a socket, and by the third a server of the host's could share a
// port with the tool's.
func connectRules(t table) []SockFilter {
	p := append(notify([]uint32{t.connect, t.bind, t.listen}), []SockFilter{
		{bpfEqual, 0, 10, t.socket},
		{bpfLoad, 0, 0, dataArgs},
		{bpfEqual, 6, 0, afUnix}, // of which a profile leaves streams
		{bpfEqual, 5, 0, afNetlink},
		{bpfEqual, 1, 0, afInet},
		{bpfEqual, 0, 4, afInet6},
		{bpfLoad, 0, 0, dataArgs + 8},
		{bpfMask, 0, 0, sockKinds},
		{bpfEqual, 0, 1, sockStream},
		{bpfRet, 0, 0, retNotify},
		{bpfRet, 0, 0, retAllow},
	}...)
	options := []struct{ level, name, answer uint32 }{
		{0, 4, errnoPerm},  // IPPROTO_IP, IP_OPTIONS
		{1, 25, errnoPerm}, // SOL_SOCKET, SO_BINDTODEVICE
		{1, 62, errnoPerm}, // SOL_SOCKET, SO_BINDTOIFINDEX
		{6, 30, errnoNot},  // IPPROTO_TCP, TCP_FASTOPEN_CONNECT
		{1, 21, 0},         // SOL_SOCKET, SO_SNDTIMEO
		{1, 67, 0},         // SOL_SOCKET, SO_SNDTIMEO_NEW
		{1, 13, 0},         // SOL_SOCKET, SO_LINGER
		{1, 15, 0},         // SOL_SOCKET, SO_REUSEPORT
	}
	var q []SockFilter
	for _, o := range options {
		q = append(q,
			SockFilter{bpfLoad, 0, 0, dataArgs + 8},
			SockFilter{bpfEqual, 0, 3, o.level},
			SockFilter{bpfLoad, 0, 0, dataArgs + 16},
			SockFilter{bpfEqual, 0, 1, o.name},
			SockFilter{bpfRet, 0, 0, retErrno | o.answer})
	}
	q = append(q, SockFilter{bpfRet, 0, 0, retAllow})
	return append(append(p, SockFilter{bpfEqual, 0, uint8(len(q)), t.setsockopt}), q...)
}

// openRule looks at the flags of one open call. The accumulator holds the number again only where the rule
// does not apply, so both ends of the flag test return.
func openRule(o openCall, hidden bool) []SockFilter {
	flags := SockFilter{bpfLoad, 0, 0, dataArgs + 8*o.flagsArg}
	if hidden {
		return []SockFilter{
			{bpfEqual, 0, 4, o.nr},
			flags,
			{bpfSet, 0, 1, openPath},
			{bpfRet, 0, 0, retAllow},
			{bpfRet, 0, 0, retNotify},
		}
	}
	return []SockFilter{
		{bpfEqual, 0, 5, o.nr},
		flags,
		{bpfSet, 1, 0, openPath},
		{bpfSet, 1, 0, openWrites},
		{bpfRet, 0, 0, retAllow},
		{bpfRet, 0, 0, retNotify},
	}
}

// traceRules sends the requests of ptrace(2) that carry PTRACE_O_TRACEEXIT among their options: see trace in
// trace_linux.go. PTRACE_OLDSETOPTIONS is another number of PTRACE_SETOPTIONS (ptrace_request in kernel/ptrace.c).
func traceRules(t table) []SockFilter {
	return []SockFilter{
		{bpfEqual, 0, 8, t.ptrace},
		{bpfLoad, 0, 0, dataArgs},
		{bpfEqual, 2, 0, ptraceSeize},
		{bpfEqual, 1, 0, ptraceSetOptions},
		{bpfEqual, 0, 3, ptraceOldSetOptions},
		{bpfLoad, 0, 0, dataArgs + 8*3},
		{bpfSet, 0, 1, ptraceTraceExit},
		{bpfRet, 0, 0, retNotify},
		{bpfRet, 0, 0, retAllow},
	}
}

// ExecMark is the sixth argument of the execve(2) and execveat(2) by which the tool itself is executed, which is not stopped: init, which
// would answer, is suspended by vfork until then. The kernel takes no sixth argument. A tool that gives it is not watched when it
// executes something, and no bound depends on that.
const ExecMark = 0x486f6c64

// watchRules sends what Rules.Watch watches and no bound has sent: executions, looks at the metadata of paths, and, where names is
// not set, opens. A look at a descriptor (fstat of glibc is newfstatat with AT_EMPTY_PATH) goes on.
func watchRules(t table, names bool) (p []SockFilter) {
	for _, nr := range t.executes {
		p = append(p, unless(nr, 5, bpfEqual, ExecMark)...)
	}
	for _, o := range t.stats {
		p = append(p, unless(o.nr, o.flagsArg, bpfSet, statEmptyPath)...)
	}
	p = append(p, notify(t.looks)...)
	if !names {
		p = append(p, notify(t.creates)...)
		for _, o := range t.opens {
			p = append(p, openRule(o, true)...)
		}
	}
	return p
}

// unless sends a call but where the low word of an argument passes a test.
func unless(nr, arg uint32, test uint16, k uint32) []SockFilter {
	return []SockFilter{
		{bpfEqual, 0, 4, nr},
		{bpfLoad, 0, 0, dataArgs + 8*arg},
		{test, 0, 1, k},
		{bpfRet, 0, 0, retAllow},
		{bpfRet, 0, 0, retNotify},
	}
}

type openCall struct{ nr, flagsArg uint32 }

type errnoCall struct{ nr, errno uint32 }

type table struct {
	audit  uint32
	notify []uint32
	fence  []uint32 // the calls of Rules.Fence
	opens  []openCall
	errno  []errnoCall
	prctl  uint32

	executes, looks, creates []uint32 // of Rules.Watch
	stats                    []openCall

	bind, listen, connect, setsockopt, socket, ptrace uint32
}

// tables lists, from arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h, the calls
// that are sent to the supervisor and those that are answered at once, being ways around it: openat2 (its
// flags are in memory; every portable caller falls back on ENOSYS), open_by_handle_at (no path at all), io_uring
// (opens and renames out of seccomp's sight), setxattrat and removexattrat (whose arguments are in memory).
var tables = map[string]table{
	"amd64": {
		audit: auditAMD64,
		notify: []uint32{
			85, 83, 258, 133, 259, // creat mkdir mkdirat mknod mknodat
			82, 264, 316, // rename renameat renameat2
			86, 265, 88, 266, // link linkat symlink symlinkat
			87, 263, 84, // unlink unlinkat rmdir
			76, 90, 91, 268, 452, // truncate chmod fchmod fchmodat fchmodat2
			188, 189, 190, 197, 198, 199, // setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
		},
		fence: []uint32{92, 93, 94, 260, 132, 235, 261, 280}, // chown fchown lchown fchownat utime utimes futimesat utimensat
		opens: []openCall{{257, 2}, {2, 1}},
		errno: []errnoCall{
			{437, errnoSys}, {304, errnoPerm}, {425, errnoSys}, {426, errnoSys}, {427, errnoSys},
			{463, errnoSys}, {466, errnoSys},
		},
		executes: []uint32{59, 322},                        // execve execveat
		looks:    []uint32{4, 6, 80, 21, 269},              // stat lstat chdir access faccessat
		stats:    []openCall{{262, 3}, {332, 2}, {439, 3}}, // newfstatat statx faccessat2
		creates:  []uint32{85},
		prctl:    157, bind: 49, listen: 50, connect: 42, setsockopt: 54, socket: 41, ptrace: 101,
	},
	"arm64": {
		audit: auditARM64,
		notify: []uint32{
			34, 33, // mkdirat mknodat
			38, 276, // renameat renameat2
			37, 36, 35, // linkat symlinkat unlinkat
			45, 52, 53, 452, // truncate fchmod fchmodat fchmodat2
			5, 6, 7, 14, 15, 16, // setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
		},
		fence: []uint32{55, 54, 88}, // fchown fchownat utimensat
		opens: []openCall{{56, 2}},
		errno: []errnoCall{
			{437, errnoSys}, {265, errnoPerm}, {425, errnoSys}, {426, errnoSys}, {427, errnoSys},
			{463, errnoSys}, {466, errnoSys},
		},
		executes: []uint32{221, 281},
		looks:    []uint32{49, 48}, // chdir faccessat
		stats:    []openCall{{79, 3}, {291, 2}, {439, 3}},
		prctl:    167, bind: 200, listen: 201, connect: 203, setsockopt: 208, socket: 198, ptrace: 117,
	},
}
