package compile

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// Errnos, which are the same on every architecture that Linux has a filter for.
const (
	errPerm     = 1
	errAccess   = 13
	errArgument = 22 // EINVAL
	errNoTTY    = 25 // what a file system without such a command answers
	errNoSys    = 38
	errNoFamily = 97 // EAFNOSUPPORT
	familyVsock = 40
	groupOf     = 1 // PRIO_PGRP of setpriority(2); ioprio_set(2) counts from 1
	userOf      = 2 // PRIO_USER
	typeMask    = 0xf
	typeDgram   = 2 // SOCK_DGRAM
	typeRaw     = 3 // SOCK_RAW, which AF_UNIX takes for SOCK_DGRAM
	portsSince  = 4 // the Landlock ABI that rules on TCP's ports
	scopeSince  = 6 // the Landlock ABI that scopes signals

	ptraceOldSetOptions, ptraceSetOptions, ptraceSeize = 21, 0x4200, 0x4206
	traceExit                                          = 0x40 // PTRACE_O_TRACEEXIT

	cloneNewUser       = 0x10000000
	limitCore          = 4 // RLIMIT_CORE
	fcntlSetFlags      = 4 // F_SETFL
	openAsync          = 0x2000
	ioctlAsync         = 0x5452 // FIOASYNC
	ioctlTypes         = 0x5412 // TIOCSTI
	ioctlPastes        = 0x541c // TIOCLINUX
	fcntlSetLease      = 1024
	fcntlSetDelegation = 1024 + 16
)

// fallbackRules are the rules that take the place of namespaces: those that this host
// lacks, and those that no namespace is. They win over the policy's profile.
func (c *compilation) fallbackRules() []seccomp.Rule {
	rules := slices.Clone(noHeldPipes)
	if !c.supervisesTracers() {
		rules = append(rules, noExitStops...)
	}
	if c.plan.Namespaces.Net && c.Policy.Root == nil && c.defaultProfile() {
		rules = append(rules, echoSockets...)
	}
	bounded := !c.open(policy.BoundNetwork) && !c.Policy.Network.Host
	if !c.defaultProfile() && (bounded || !c.open(policy.BoundFiles) || !c.open(policy.BoundProcesses)) {
		rules = append(rules, noTyping...)
	}
	if bounded && !c.root.Nest && !c.defaultProfile() {
		rules = append(rules, denyHostSockets...)
	}
	if !c.defaultProfile() && c.closesKeys() {
		rules = append(rules, noKeys)
	}
	if c.namespaced && !c.plan.Namespaces.User && c.Policy.Root == nil && !c.defaultProfile() {
		rules = append(rules, noUsers...)
	}
	if !c.namespaced && bounded {
		if c.streams() {
			rules = append(rules, Streams(c.local())...)
		} else {
			rules = append(rules, noSockets...)
		}
	}
	rules = append(rules, c.fileCalls(rules)...)
	if c.fences() {
		rules = append(rules, noInodeFlags()...)
	}
	if c.abortsCores() {
		rules = append(rules, keepCoreLimit...)
	}
	if !c.open(policy.BoundFiles) {
		rules = append(rules, noLeases...)
	}
	if c.open(policy.BoundProcesses) || c.root.Nest {
		return rules
	}
	if c.plan.Namespaces.PID {
		rules = append(rules, noInit...)
	} else {
		rules = append(rules, noOthers...)
		if !c.plan.Namespaces.IPC {
			rules = append(rules, noSharedIPC)
		}
	}
	rules = append(rules, noGroup...)
	if c.Facts.Landlock.Value < scopeSince {
		rules = append(rules, noGroupSignals)
		rules = append(rules, noInputSignals...)
	}
	return rules
}

// noHeldPipes keep the tool from sleeping, for as long as it likes, in a call that holds the lock of a pipe: splice(2) and sendfile(2) do
// while they wait for a socket or a terminal (splice_file_to_pipe and splice_to_socket in fs/splice.c). Who reads, opens or closes the
// pipe then waits for the lock, and no signal ends that (anon_pipe_read, fifo_open and pipe_release in fs/pipe.c): init, where it serves a FIFO or
// reads what is to become a .git file, which would neither end the run nor be killed, and the harness, at the tool's output. An offset keeps the
// kernel to files that have one (FMODE_PREAD), which do not wait. EINVAL is what callers are told of descriptors that cannot be spliced.
var noHeldPipes = []seccomp.Rule{
	{Names: []string{"splice"}, Action: seccomp.Errno(errArgument), Args: []seccomp.Arg{{Index: 1, Width: 64}, {Index: 3, Width: 64}}, Reason: "holds the lock of a pipe as long as a socket has nothing"},
	{Names: []string{"sendfile"}, Action: seccomp.Errno(errArgument), Args: []seccomp.Arg{{Index: 2, Width: 64}}, Reason: "holds the lock of a pipe as long as a terminal or socket has nothing"},
}

// noTyping keep the tool from typing into the terminal that it was given: what reads there next, the user's shell when the harness has ended, executes it outside
// of every bound (ioctl_tty(2), ioctl_console(2)). The default profile refuses both.
var noTyping = []seccomp.Rule{
	{Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 1, Value: ioctlTypes}}, Reason: "types into the terminal as if the user had"},
	{Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 1, Value: ioctlPastes}}, Reason: "pastes the console's selection as if the user had"},
}

// noKeys takes the place of a namespace of keys, of which there is none.
var noKeys = seccomp.Rule{Names: []string{"add_key", "request_key", "keyctl"}, Action: seccomp.Errno(errPerm), Reason: "the user's keyrings are in no namespace"}

// noUsers refuse user namespaces to the tool of a root harness whose sandbox has none (the quota of a sandbox's user namespace refuses them elsewhere): with the
// capabilities that the tool has in one it mounts, without Landlock, the harness's control group.
var noUsers = []seccomp.Rule{
	{Names: []string{"clone", "unshare"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 0, Op: seccomp.MaskedEqual, Mask: cloneNewUser, Value: cloneNewUser}},
		Reason: "a user namespace gives capabilities"},
	{Names: []string{"clone3"}, Action: seccomp.Errno(errNoSys), Reason: "makes namespaces out of a filter's sight"},
}

// noExitStops keep a tracer from stopping a tracee that is being killed. Such a
// stop (PTRACE_EVENT_EXIT, ptrace(2)) ends only when the tracer goes on or is gone,
// and a second SIGKILL is dropped: two processes that trace each other so wait for
// each other until the machine is rebooted, with everything that waits for them.
// One of the two is under every policy, since the end of a run is always held: the
// supervisor, which lets one process at a time ask for it, as strace does (trace in
// package supervisor), or these rules, which would win over it. PTRACE_OLDSETOPTIONS is
// amd64's other number for the same request (ptrace_request in kernel/ptrace.c).
var noExitStops = []seccomp.Rule{
	exitStop(ptraceSeize), exitStop(ptraceSetOptions), exitStop(ptraceOldSetOptions),
}

// supervisesTracers reports whether the supervisor can keep tracers apart: where it is
// loaded, and no process of another sandbox, which has another supervisor, can be traced.
// A pid namespace hides those, and Landlock lets no process of another domain be traced
// (Documentation/userspace-api/landlock.rst, "Ptrace restrictions").
func (c *compilation) supervisesTracers() bool {
	apart := c.plan.Namespaces.PID || c.plan.Uses(plan.Landlock) || c.plan.Uses(plan.LandlockScope)
	return apart && slices.ContainsFunc(c.plan.Steps, func(s plan.Step) bool { _, ok := s.Do.(plan.LoadSupervisor); return ok })
}

func exitStop(request uint64) seccomp.Rule {
	return seccomp.Rule{Names: []string{"ptrace"}, Action: seccomp.Errno(errArgument),
		Args:   []seccomp.Arg{{Index: 0, Value: request}, {Index: 3, Op: seccomp.MaskedEqual, Mask: traceExit, Value: traceExit}},
		Reason: "two processes that stop each other at their ends cannot be killed"}
}

// keepCoreLimit keeps a limit of one byte for cores, at which the kernel starts no
// program to take a dump, where it is: at 0 it starts the host's, as root and outside
// of every namespace, which reads what the tool has written (do_coredump in
// fs/coredump.c). Setting it seems to succeed, since `ulimit -c 0` is in many scripts.
// A filter does not see the new limits, but whether there are any.
var keepCoreLimit = []seccomp.Rule{
	{Names: []string{"setrlimit"}, Action: seccomp.Errno(0), Args: []seccomp.Arg{{Index: 0, Value: limitCore}}, Reason: "a core limit of 0 starts the host's core handler"},
	{Names: []string{"prlimit64"}, Action: seccomp.Errno(0), Args: []seccomp.Arg{{Index: 1, Value: limitCore}, {Index: 2, Width: 64, Op: seccomp.NotEqual}},
		Reason: "a core limit of 0 starts the host's core handler"},
}

// abortsCores reports whether the tool's limit on cores is 1.
func (c *compilation) abortsCores() bool {
	if c.open(policy.BoundResources) {
		return false
	}
	settings, err := c.limits()
	return err == nil && slices.ContainsFunc(settings, func(s rlimit.Setting) bool { return s.Resource == rlimit.Core && s.Hard == 1 })
}

// noLeases keep the tool from holding up those who write what it may only read: a
// lease on a file of one's own uid makes an open for writing wait for it, 45 seconds
// by default (F_SETLEASE in fcntl(2)); so does a delegation (F_SETDELEG, Linux 6.19).
// flock(2) and record locks stay: they bind those alone who ask for them.
var noLeases = []seccomp.Rule{
	{Names: []string{"fcntl"}, Action: seccomp.Errno(errArgument), Args: []seccomp.Arg{{Index: 1, Value: fcntlSetLease}}, Reason: "makes the file's writers outside wait"},
	{Names: []string{"fcntl"}, Action: seccomp.Errno(errArgument), Args: []seccomp.Arg{{Index: 1, Value: fcntlSetDelegation}}, Reason: "makes those who change the directory outside wait"},
}

// noSockets takes the place of an empty network namespace: without one, any
// socket at all reaches the host: its network, or by a path its daemons, which
// Landlock does not stop before ABI 9. A ring makes sockets of its own
// (IORING_OP_SOCKET), which no filter sees. A pair of datagram sockets can be
// connected anew, and reaches whatever listens at a path (unix(7)); a pair of
// stream sockets cannot.
var noSockets = []seccomp.Rule{
	{Names: []string{"socket", "io_uring_setup"}, Action: seccomp.Errno(errAccess), Reason: "without a network namespace every socket reaches the host"},
	{Names: []string{"socketpair"}, Action: seccomp.Errno(errAccess), Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: typeDgram}},
		Reason: "without a network namespace a datagram socket reaches the host's local sockets"},
	{Names: []string{"socketpair"}, Action: seccomp.Errno(errAccess), Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: typeRaw}},
		Reason: "a datagram socket by another name"},
}

// denyHostSockets refuses the ways to other machines that no network namespace holds, and
// that the default profile refuses anyway: sockets to the hypervisor (vsock(7)), and
// a program of the host's, outside of every namespace, that the kernel starts to find
// a key (request_key(2) with callout information), which asks name servers for one
// kind of them (Documentation/networking/dns_resolver.rst).
var denyHostSockets = []seccomp.Rule{
	{Names: []string{"socket"}, Action: seccomp.Errno(errNoFamily), Args: []seccomp.Arg{{Index: 0, Value: familyVsock}}, Reason: "no network namespace holds it"},
	{Names: []string{"request_key"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 2, Width: 64, Op: seccomp.NotEqual, Value: 0}}, Reason: "the host's program asks the host's name servers"},
}

// echoSockets are ping(8)'s, which send echo requests and receive their answers alone (icmp(7)). In the default profile they are
// refused: here the network namespace is the sandbox's own, and a capture refuses such packets.
var echoSockets = []seccomp.Rule{echoSocket(familyInet, protocolICMP), echoSocket(familyInet6, protocolICMP6)}

func echoSocket(family, protocol uint64) seccomp.Rule {
	return seccomp.Rule{Names: []string{"socket"}, Action: seccomp.Allow, Args: []seccomp.Arg{
		{Index: 0, Value: family}, {Index: 1, Op: seccomp.MaskedEqual, Mask: typeMask, Value: typeDgram}, {Index: 2, Value: protocol},
	}, Reason: "ping, in a network of the sandbox's own"}
}

// noGroup: the tool shares its process group with the harness, as a child of
// os/exec does, and the number 0 means that group in every pid namespace
// (setpriority(2), ioprio_set(2)). Landlock has no rule for it.
var noGroup = []seccomp.Rule{
	which("setpriority", groupOf, "reaches the harness, whose process group is the tool's"),
	which("ioprio_set", groupOf+1, "reaches the harness, whose process group is the tool's"),
}

// noGroupSignals: so does kill(0, ...), which Landlock's scope stops.
var noGroupSignals = seccomp.Rule{
	Names: []string{"kill"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 0, Value: 0}},
	Reason: "without Landlock's scope it kills the harness, whose process group is the tool's",
}

// noInputSignals: so does input on a terminal, by the signal that F_SETSIG names: the kernel sends it to the terminal's foreground group
// (__tty_fasync in drivers/tty/tty_io.c), in which the harness is. What asks by ioctl(2) seems to succeed: nginx starts no worker without.
var noInputSignals = []seccomp.Rule{
	{Names: []string{"fcntl"}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 1, Value: fcntlSetFlags}, {Index: 2, Op: seccomp.MaskedEqual, Mask: openAsync, Value: openAsync}},
		Reason: "without Landlock's scope a terminal's input signals the harness"},
	{Names: []string{"ioctl"}, Action: seccomp.Errno(0), Args: []seccomp.Arg{{Index: 1, Value: ioctlAsync}}, Reason: "O_ASYNC by another name"},
}

// noOthers takes the place of a pid namespace, where Landlock does not:
// limits and priorities ask for the same user alone, and a processor time limit
// of zero kills (getrlimit(2)). Threads cannot be told from other processes by
// their numbers, so of those only one's own, 0, passes.
var noOthers = []seccomp.Rule{
	byNumber(0, "prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
	which("setpriority", userOf, "reaches all the user's processes"),
	which("ioprio_set", userOf+1, "reaches all the user's processes"),
	byNumber(1, "setpriority", "ioprio_set"),
}

// noSharedIPC takes the place of an ipc namespace.
var noSharedIPC = seccomp.Rule{Names: []string{
	"shmget", "shmat", "shmdt", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
}, Action: seccomp.Errno(errNoSys), Reason: "without an ipc namespace the user's other processes share them"}

// noInit keeps the tool's hands off the sandbox's first process, where it is
// number 1. Being of the same user is all that these calls ask for (prlimit(2),
// sched_setaffinity(2), setpriority(2)). With fewer descriptors than it polls, init
// would not notice that the tool has ended.
var noInit = []seccomp.Rule{
	ofInit(0, "prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"),
	ofInit(1, "setpriority", "ioprio_set"),
}

// noOthersLimits keeps the tool of a session from the limits of other commands' processes and their wardens: being of the same user is all that
// prlimit(2) asks for, and a supervisor that may write two bytes would cut off what it writes for its tool. To read limits is allowed, and to set
// one's own.
var noOthersLimits = seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Allow, Rules: []seccomp.Rule{{
	Names: []string{"prlimit64"}, Action: seccomp.Errno(errPerm),
	Args:   []seccomp.Arg{{Index: 0, Op: seccomp.NotEqual, Value: 0}, {Index: 2, Op: seccomp.NotEqual, Value: 0, Width: 64}},
	Reason: "in a session the number may be another command's",
}}}

func ofInit(index int, names ...string) seccomp.Rule {
	return seccomp.Rule{Names: names, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: uint8(index), Value: 1}},
		Reason: "number 1 is the sandbox's init"}
}

func which(name string, value uint64, reason string) seccomp.Rule {
	return seccomp.Rule{Names: []string{name}, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: 0, Value: value}}, Reason: reason}
}

func byNumber(index int, names ...string) seccomp.Rule {
	return seccomp.Rule{Names: names, Action: seccomp.Errno(errPerm), Args: []seccomp.Arg{{Index: uint8(index), Op: seccomp.NotEqual, Value: 0}},
		Reason: "without a pid namespace the number may be anybody's"}
}
