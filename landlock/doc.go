// Package landlock holds Landlock rulesets as data, says what a kernel of a given Landlock ABI can
// hold of one, and restricts the calling thread with it.
//
//	r := landlock.Ruleset{ // handles every right and grants these alone
//		Paths: []landlock.PathRule{
//			{Path: "/usr", Access: landlock.FSReadExecute},
//			{Path: "/home/me/project", Access: landlock.FSReadWrite | landlock.FSRefer},
//		},
//	}
//	abi, err := landlock.ABI()                    // which rights does this kernel know?
//	r, lost, err := landlock.Downgrade(r, abi)    // lost: what it cannot hold, right by right
//	f, err := landlock.Build(r)                   // opens the paths, makes a ruleset descriptor
//	runtime.LockOSThread()                        // and never unlock: the thread stays restricted
//	err = landlock.RestrictThread(int(f.Fd()), 0) // from here on this thread and its children
//
// The data part (rights, rulesets, the ABI table, Downgrade, the byte encoders) does no I/O, is the
// same on every operating system, and is what tests read. The kernel part (ABI, FixedErrata, Build,
// RestrictThread) exists on Linux; elsewhere its functions return an error that wraps
// errors.ErrUnsupported. To restrict every thread of a Go process use the sub-package process.
//
// # Limits
//
// A ruleset restricts what is asked for by path after it is in force. It does not restrict:
//   - descriptors that are already open: they keep the rights they were opened with;
//   - chmod, chown, utimes, setxattr, flock, fcntl, access, stat and readlink, on any path: metadata
//     can be read everywhere and changed wherever the file permissions allow it;
//   - chdir, and opening with O_PATH;
//   - mounts: a process restricted on files can no longer mount or pivot_root at all, whatever its rules say;
//   - UDP before ABI 10, raw, packet, netlink and vsock sockets, and any protocol but TCP and UDP;
//     an MPTCP socket is not a TCP socket to Landlock and ignores the TCP rights
//     (https://github.com/landlock-lsm/linux/issues/54; Go listens on MPTCP by default);
//   - connect to a UNIX socket by path before ABI 9;
//   - the scopes between processes of one domain and its sub-domains: only reaching out is refused.
//
// At most 16 rulesets can be stacked on a thread. Rules belong to inodes, not to names: a rule on a file
// that is then replaced by rename covers the old file. There is no rule that takes a right away beneath
// a path that has it: leave the right out above, or put a further ruleset on top.
//
// Sources: landlock(7), landlock_create_ruleset(2), landlock_add_rule(2), landlock_restrict_self(2),
// https://docs.kernel.org/userspace-api/landlock.html and include/uapi/linux/landlock.h.
package landlock
