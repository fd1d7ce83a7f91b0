package seccomp

import "slices"

// Off returns the filter that refuses nothing. IsOff knows it: a caller loads no program for
// it, and reports the bound as absent. If it is compiled and loaded all the same, it refuses
// foreign architectures and x32 numbers, as every program does.
func Off() Filter { return Filter{Default: Allow, Unknown: Allow} }

// Default returns the profile for ordinary tools: shells, compilers, interpreters, databases,
// debuggers. But for personality(ADDR_NO_RANDOMIZE) it allows no call that Docker's default profile (github.com/moby/profiles, June
// 2026) refuses to a container without capabilities, and refuses more: see each rule's reason.
//
// It names every syscall of both architectures in some rule. What is refused fails with EPERM,
// or with ENOSYS where programs know how to do without; syscalls newer than this package fail
// with ENOSYS, so that C libraries fall back. It needs Linux 4.8 or later, since before that a
// tracer could change a call after the filter had passed it (seccomp(2)).
func Default() Filter {
	return Filter{Default: Errno(EPERM), Unknown: Errno(ENOSYS), Rules: slices.Concat(
		ordinaryRules(),
		[]Rule{
			allow("debuggers on the tool's own processes; the kernel asks for the same user and, between Landlock domains, for none in between",
				"ptrace", "process_vm_readv", "process_vm_writev"),
			allow("System V and POSIX queues, for programs such as PostgreSQL; an ipc namespace keeps them apart",
				"shmat", "shmctl", "shmdt", "shmget", "semctl", "semget", "semop", "semtimedop", "msgctl", "msgget", "msgrcv", "msgsnd",
				"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink"),
			allow("a tool may restrict itself further; filters and rulesets only add up",
				"seccomp", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "prctl"),
			allow("zero-copy file access and files' handles; old, with few users, but it opens nothing by itself", "vmsplice", "remap_file_pages", "name_to_handle_at"),
			allow("sockets that exist can be used; which ones come to exist, the rules for socket say",
				"bind", "connect", "listen", "accept", "accept4"),
		},
		personalityRules(), socketRules(), refusedRules(),
	)}
}

// Strict returns a smaller profile, for tools that compute on files: beyond what Default
// refuses, it has no sockets but a pair that the tool makes for itself, no debugging of other
// processes, no System V or POSIX queues, no personality, and no loading of filters or
// Landlock rulesets. Shells, coreutils, Python, git on local files and the Go toolchain run in
// it; what needs a name server or a local daemon does not.
func Strict() Filter {
	return Filter{Default: Errno(EPERM), Unknown: Errno(ENOSYS), Rules: slices.Concat(
		ordinaryRules(),
		[]Rule{
			refuse(EPERM, "reading and steering other processes", "ptrace", "process_vm_readv", "process_vm_writev"),
			refuse(EPERM, "memory and queues that outlive the process", "shmat", "shmctl", "shmdt", "shmget", "semctl", "semget", "semop", "semtimedop",
				"msgctl", "msgget", "msgrcv", "msgsnd", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink"),
			refuse(EPERM, "loading programs into the kernel is attack surface that such a tool does not need",
				"seccomp", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self"),
			{Names: []string{"prctl"}, Action: Errno(EPERM), Args: []Arg{{Index: 0, Value: prSetSeccomp}}, Reason: "seccomp by its older door"},
			allow("the process's own attributes: name, dumpable, parent-death signal", "prctl"),
			refuse(ENOSYS, "zero-copy file access and files' handles; programs do without", "vmsplice", "remap_file_pages", "name_to_handle_at"),
			refuse(EPERM, "no execution domain but the one it has", "personality"),
			refuse(EAFNOSUPPORT, "no socket that has an address", "socket"),
			refuse(EPERM, "no socket that has an address", "bind", "connect", "listen", "accept", "accept4"),
		},
		socketpairRules(), refusedRules(),
	)}
}

// allow returns a rule that allows calls whatever their arguments.
func allow(reason string, names ...string) Rule {
	return Rule{Names: names, Action: Allow, Reason: reason}
}

// refuse returns a rule that makes calls fail with an errno whatever their arguments.
func refuse(errno uint16, reason string, names ...string) Rule {
	return Rule{Names: names, Action: Errno(errno), Reason: reason}
}
