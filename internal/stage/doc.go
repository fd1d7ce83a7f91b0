// Package stage is the harness's half of the re-execution: it makes a plan into
// a program, hands it to the re-executed process, and reads what comes back;
// package child is the other half, package wire what both agree on, package
// guard the supervisor that runs inside.
//
//	compile_linux.go  Plan -> Template: which system calls, in which order
//	mounts_linux.go   the file system's steps
//	overlay_linux.go  overlayfs, and finding out whether there is one
//	locks_linux.go    Landlock, seccomp, capabilities, limits
//	encode_linux.go   Template x Run -> a sealed memfd
//	control_linux.go  the control socket: held, failed, evidence, empty
//	try_linux.go      a stage without a tool: whether namespaces can be made here
//	osexec_linux.go   what os/exec does not tell of an exec.Cmd
//	planof_linux.go   a sandbox's plan, for measuring its parts
//
// A Template is made once for a sandbox and used for every command; a Run is
// one command's arguments, environment and descriptors.
package stage
