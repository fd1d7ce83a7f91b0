package seccomp

// Constants of Linux that are the same on amd64 and arm64.
const (
	cloneNewAny = 0x7E020000 // CLONE_NEWNS|NEWCGROUP|NEWUTS|NEWIPC|NEWUSER|NEWPID|NEWNET, linux/sched.h; NEWTIME is not for clone

	tiocsti   = 0x5412 // asm-generic/ioctls.h
	tioclinux = 0x541C
	tiocsetd  = 0x5423

	prSetSeccomp = 22 // PR_SET_SECCOMP, linux/prctl.h

	afUnix, afInet, afInet6, afNetlink   = 1, 2, 10, 16 // linux/socket.h
	sockStream, sockDgram, sockRaw       = 1, 2, 3      // linux/net.h
	sockTypeMask                         = 0xf          // SOCK_TYPE_MASK; SOCK_CLOEXEC and SOCK_NONBLOCK lie above
	ipprotoTCP, ipprotoUDP, netlinkRoute = 6, 17, 0     // linux/in.h, linux/netlink.h
)

// argumentRules judge the calls that every profile allows by their arguments. All compare 32
// bits, as the kernel does: clone takes the low half of its flags, an ioctl command is an
// unsigned int (CVE-2019-10063 was a filter that compared 64).
func argumentRules() []Rule {
	command := func(n uint64) []Arg { return []Arg{{Index: 1, Value: n}} }
	return []Rule{
		{Names: []string{"clone"}, Action: Allow, Args: []Arg{{Index: 0, Op: MaskedEqual, Mask: cloneNewAny}},
			Reason: "threads and processes in the namespaces that one is in"},
		refuse(EPERM, "a new user namespace gives capabilities, and so the kernel's largest attack surface", "clone"),
		refuse(ENOSYS, "its flags lie in memory, out of a filter's sight; C libraries fall back to clone", "clone3"),
		{Names: []string{"ioctl"}, Action: Errno(EPERM), Args: command(tiocsti),
			Reason: "types into the terminal as if the user had (CVE-2017-5226)"},
		{Names: []string{"ioctl"}, Action: Errno(EPERM), Args: command(tioclinux),
			Reason: "pastes the console's selection as if the user had (CVE-2023-28100)"},
		{Names: []string{"ioctl"}, Action: Errno(EPERM), Args: command(tiocsetd),
			Reason: "line disciplines load old drivers into the kernel (CVE-2017-2636)"},
		allow("other commands; which devices there are, the file bound decides", "ioctl"),
	}
}

// personalityRules allow the execution domains that Docker allows: Linux, 32-bit, either with
// a 2.6 version number, and asking for the current one; and one that Docker refuses: Linux without a random layout of
// memory (ADDR_NO_RANDOMIZE), which debuggers, recorders (rr) and builds that are to be repeated ask for. It holds for what the caller executes
// from then on, of which a program that takes another's rights is excepted (PER_CLEAR_ON_SETID): the tool makes its own programs
// easier to attack, and they have the tool's rights. READ_IMPLIES_EXEC, MMAP_PAGE_ZERO and the other bits stay
// refused, in every combination.
func personalityRules() []Rule {
	var rules []Rule
	for _, p := range [...]struct {
		value  uint64
		reason string
	}{
		{0x0, "ordinary Linux"}, {0x8, "report a 32-bit machine (PER_LINUX32)"}, {0x20000, "report version 2.6 (UNAME26)"},
		{0x20008, "PER_LINUX32 with UNAME26"}, {0xffffffff, "ask for the current one"},
		{0x40000, "no random layout of memory in one's own programs (ADDR_NO_RANDOMIZE): setarch -R, gdb, rr"},
	} {
		rules = append(rules, Rule{Names: []string{"personality"}, Action: Allow, Args: []Arg{{Index: 0, Value: p.value}}, Reason: p.reason})
	}
	return append(rules, refuse(EPERM, "makes data executable, maps the null page or brings back old bugs of memory layout", "personality"))
}

// socketRules allow local, TCP and UDP sockets, and netlink for asking about interfaces, as getifaddrs does.
func socketRules() []Rule {
	family := func(n uint64) Arg { return Arg{Index: 0, Value: n} }
	kind := func(n uint64) Arg { return Arg{Index: 1, Op: MaskedEqual, Mask: sockTypeMask, Value: n} }
	protocol := func(op Op, n uint64) Arg { return Arg{Index: 2, Op: op, Value: n} }
	socket := func(action Action, reason string, args ...Arg) Rule {
		return Rule{Names: []string{"socket"}, Action: action, Args: args, Reason: reason}
	}
	inet := Arg{Index: 0, Op: MaskedEqual, Mask: 1<<32 - 1 - (afInet ^ afInet6), Value: afInet & afInet6} // they differ in one bit
	return append([]Rule{
		socket(Allow, "local sockets, of all types there are", family(afUnix), protocol(LessOrEqual, afUnix)),
		socket(Allow, "TCP, by default", inet, kind(sockStream), protocol(Equal, 0)),
		socket(Allow, "TCP, by its number", inet, kind(sockStream), protocol(Equal, ipprotoTCP)),
		socket(Allow, "UDP, by default", inet, kind(sockDgram), protocol(Equal, 0)),
		socket(Allow, "UDP, by its number", inet, kind(sockDgram), protocol(Equal, ipprotoUDP)),
		socket(Errno(EPERM), "raw sockets, which need a capability anyway", inet, kind(sockRaw)),
		socket(Errno(EPROTONOSUPPORT), "MPTCP, which Landlock's TCP rules do not see, SCTP, DCCP, ICMP and other rare code", inet),
		socket(Allow, "routes and interfaces, for getifaddrs", family(afNetlink), kind(sockRaw), protocol(Equal, netlinkRoute)),
		socket(Allow, "routes and interfaces, opened the other way", family(afNetlink), kind(sockDgram), protocol(Equal, netlinkRoute)),
		socket(Errno(EPROTONOSUPPORT), "netlink to the firewall, audit, crypto, udev and the like", family(afNetlink)),
		refuse(EAFNOSUPPORT, "packet, vsock (to the hypervisor or the Windows host), AF_ALG, Bluetooth and all other families", "socket"),
	}, socketpairRules()...)
}

// socketpairRules allow a pair of local sockets, which has no address and reaches no other process.
func socketpairRules() []Rule {
	return []Rule{
		{Names: []string{"socketpair"}, Action: Allow, Args: []Arg{{Index: 0, Value: afUnix}}, Reason: "a pipe in both directions"},
		refuse(EAFNOSUPPORT, "no other family is needed for a pair", "socketpair"),
	}
}
