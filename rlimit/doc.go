// Package rlimit holds resource limits as data, with units, and sets them on the calling process.
//
//	inherited, err := rlimit.Current()
//	limits := rlimit.Limits{
//		FSize:  rlimit.At(1 << 30),             // no file above 1 GiB
//		NoFile: rlimit.Between(1024, 4096),     // soft, hard
//		CPU:    rlimit.Between(60, 65),         // seconds: SIGXCPU, then SIGKILL
//	}
//	limits = limits.Or(rlimit.Defaults(inherited, 0))
//	settings, err := limits.Resolve(inherited)  // pure: what would be set, or which field cannot be
//	err = limits.Apply()                        // sets it, for this process and its children to come
//
// A limit that is nil stays as it was inherited. That is safe as a zero value because a limit
// takes rights away and never gives any: a process without a Limits is held as its parent is.
// Limits only tighten: a hard limit above the inherited one is an error, even where the
// process has CAP_SYS_RESOURCE. Nothing is lowered in silence.
//
// # Limits
//
//   - All but MemLock, MsgQueue, NProc and SigPending count per process: a tool that forks multiplies them. Bounds
//     on a whole tree need a cgroup.
//   - NProc, MsgQueue, MemLock (in part) and SigPending count per real user, and since Linux 5.14 per user and user namespace (kernel
//     commit 21d1c5e386bc). Without a user namespace of its own the tool shares the count with all that runs as that user.
//   - NProc counts threads, and is not enforced for the machine's root: not for real uid 0 outside, even inside a user
//     namespace, nor for a process with CAP_SYS_RESOURCE or CAP_SYS_ADMIN (copy_process in kernel/fork.c).
//   - Core stops a dump into a program at 1 alone: with a pipe in /proc/sys/kernel/core_pattern the kernel ignores 0 and every
//     larger limit (core(5)). A process may lower its 1 to 0: package sandbox refuses that by its filter. With a socket there
//     (Linux 6.16) nothing here stops it.
//   - A Go program outlives its soft CPU limit: the runtime takes SIGXCPU and does nothing with it. The hard limit holds.
//   - RSS and Locks have had no effect since Linux 2.4.
//   - A process can raise a soft limit up to its hard limit at will. A Go program does so with NoFile at its start.
//
// Sources: getrlimit(2), core(5), user_namespaces(7).
package rlimit
