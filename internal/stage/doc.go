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
//	root_linux.go     a new root: made, pivoted to
//	mounts_linux.go   what is put into it
//	overlay_linux.go  overlayfs, and finding out whether there is one
//	net_linux.go      listeners inside the network namespace, passed up
//	tun_linux.go      a TUN device
//	dialer_linux.go   sockets of that network when the harness asks: both halves
//	users_linux.go    the maps of user namespaces
//	rights_linux.go   capabilities, the session keyring
//	locks_linux.go    Landlock, seccomp, limits
//	encode_linux.go   Template x Run -> a sealed memfd
//	control_linux.go  the control socket: held, failed, evidence, empty
//	received_linux.go the descriptors that come up on it
//	end_linux.go      waiting for the sandbox's end, and its mounts'
//	try_linux.go      a stage without a tool: whether namespaces can be made here
//
// A Template is made once for a sandbox and used for every command; a Run is
// one command's arguments, environment and descriptors.
package stage
