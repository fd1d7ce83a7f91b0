// Package child is the stage's own half: what runs of the harness's executable
// before and while the tool runs. Importing it is what makes a program able to
// be its own stage.
//
// Read it in the order in which it runs:
//
//	entry_linux.go    where a stage begins that package launch's trampoline has mapped: without a Go runtime
//	hook_linux.go     where the harness's file is executed: init. Is this process a stage? Then it never returns.
//	program_linux.go  look at the sealed program, map it, make offsets pointers
//	stage_linux.go    InStage's ops, clone init, then monitor it: deadline, harness's death, end as the tool ended
//	keeper_linux.go   without a pid namespace: who kills what is left when the process group is killed
//	init_linux.go     InInit's ops, start the tool, report, forward signals, reap, kill what is left
//	net_linux.go      beside init: the network namespace
//	tool_linux.go     InTool's ops, then execve
//	end_linux.go      how init ends; kill_linux.go: with all that is left
//	fail_linux.go     how a failure is reported, to the harness or to standard error
//	send_linux.go     the messages to the harness
//	ops_linux.go      the one loop that runs ops
//	pass_linux.go     descriptors made inside, sent to the harness
//	dialer_linux.go   sockets of the sandbox's network for the harness
//	place_linux.go    the ops of explicit layouts: a place in a tree that may be hostile
//	exec_linux.go     which of its paths the tool is, and where it starts
//	join_linux.go     how init comes into namespaces that exist already
//	evidence_linux.go what the kernel says of the tool, read back after execve
//
// # The rules
//
// Nothing here may import more than syscall, unsafe, wire, sys and supervisor: where
// the harness's file is executed, this package's init runs before those of every
// package that imports more, and a stage pays for each.
//
// Nothing here has a Go runtime: no scheduler, no garbage collector, no package
// that has initialised, no other thread to take a lock from. The stage runs on the
// kernel's stack, init and the unstarted tool on one of 256 KiB, where the check
// at the head of each Go function is made to pass (stageEntry, enterInit), so that
// none asks for a larger one. Every function allocates nothing, takes no lock,
// cannot panic, is go:norace, reads no variable that has to be initialised by
// code, and keeps its data in the package's static variables. A test reads the
// machine code: these functions call each other, the raw system call and the
// never-taken ways out of the stack check and the write barrier, and nothing else
// of the runtime. The tool's process shares even its memory with init until it
// executes, so what must outlive it is there too.
//
// The functions are not go:nosplit: the linker's limit for such chains is some
// 800 bytes, and a program built without optimisations, as debuggers want it,
// would not link.
package child
