// Package stage is the harness's half of what starts a sandbox: it makes a plan
// into a program, hands it to the stage, and reads what comes back; package child
// is the other half, package wire what both agree on, package launch how a stage is
// executed, package supervisor the supervisor that runs inside.
//
//	template_linux.go a compiled plan
//	compile_linux.go  Plan -> Template
//	lower_linux.go    one switch over the actions of a plan: which system calls each becomes
//	ops_linux.go      how one call is written, with its arguments in the blob
//	attach_linux.go   paths and mounts of the new root, for all that follow
//	root_linux.go     a new root: made, pivoted to, or the root by chroot
//	mounts_linux.go   what is put into it
//	overlay_linux.go  overlayfs, and finding out whether there is one
//	net_linux.go      listeners inside the network namespace, passed up
//	tun_linux.go      a TUN device
//	dialer_linux.go   sockets of that network when the harness asks: both halves
//	users_linux.go    the maps of user namespaces
//	rights_linux.go   capabilities, the session keyring
//	locks_linux.go    Landlock, seccomp, limits
//	rules_linux.go    path rules of Landlock, each where its path is put
//	encode_linux.go   Template x Run -> a sealed memfd
//	control_linux.go  the control socket: held, failed, evidence, empty
//	received_linux.go the descriptors that come up on it
//	end_linux.go      waiting for the sandbox's end, and its mounts'
//	try_linux.go      a stage without a tool: whether namespaces can be made here
//
//	session_linux.go  the harness's half of sessions: the socket to init, and what a command's control socket says
//
// # Sessions
//
// The socket of a session is a pair of SOCK_SEQPACKET: init has one end, the harness and its commands' stages the other. A message is a
// wire.Request: a command, with its descriptors (SCM_RIGHTS), or the end. There are no answers on it. A command's control socket is as that of a
// sandbox of one, held by its stage, its warden, and init, and says:
//
//	MsgInit      the warden's pidfd: the warden lives
//	MsgStarted      the tool was executed; or MsgFailed
//	MsgEvidence  read from that tool's /proc by its warden
//	MsgToolEnded     the tool has ended: Wait returns. What it left goes on below the warden
//	MsgDeadline  the command's stage ends it at the command's deadline
//	MsgLost      the warden was killed
//	MsgGone      no process of the command is left: the last one, from init
//
// The end of the socket without MsgGone means that init is dead, and with it the session. A command's stage that ends before MsgToolEnded
// is the command's end: os/exec kills that process to cancel. Its warden sees it and exits; the harness kills the warden as well, by its
// pidfd, in case it is held up, and a second later all that is below it. MsgToolEnded is sent before the stage is told, so that the two cannot be taken for each other.
//
// # What was weighed
//
//   - The command's stage could enter the namespaces (setns(2)) and execute the tool itself. Landlock domains cannot be entered, and sibling
//     domains with scopes cannot signal each other.
//   - Init could vfork the tools. It is suspended until execve then, by whatever the tool's file lies on, and answers no supervisor meanwhile.
//   - A nursery could load the filters once and fork every tool from there: one listener, no BPF compiled for each command. But it is filtered
//     itself while it sets up a command, can be killed by the tools, and with it the session. Tools forked ahead of the request by wardens give
//     the same gain, one at a time (ready_linux.go of package child).
//   - Wardens outside of the tools' scopes, as init of one command is: a Landlock domain is passed on by fork alone, so all tools of one domain
//     descend from its first process, and no process outside of it can stand between that and a tool. Domains of each command's own would
//     protect wardens, and forbid commands to signal each other.
//   - Wardens outside of the pid namespace: they are no reapers there (find_new_reaper of kernel/exit.c looks in one namespace), and a
//     daemon's command could not be told.
//   - Marks that a process cannot lose (a UTS namespace, a cgroup) in the place of a parent: not to be had without capabilities or delegation.
//
// A Template is made once for a sandbox and used for every command; a Run is
// one command's arguments, environment and descriptors.
package stage
