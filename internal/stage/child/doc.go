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
//	timer_linux.go    the deadline's timer
//	stop_linux.go     the stage stops when the tool has stopped, and goes on with it
//	keeper_linux.go   without a pid namespace: who kills what is left when the process group is killed
//	init_linux.go     InInit's ops
//	serve_linux.go    start the tool, report, forward signals, reap, kill what is left
//	alone_linux.go    signals that a process outside sends to init, the keeper or a relay: for the tool's children
//	beside_linux.go   processes beside init, for what takes long; the harness's root is taken off there
//	net_linux.go      beside init: the network namespace; a witness, which init tries to signal for the self-check of a session's scopes
//	tool_linux.go     InTool's ops, then execve
//	end_linux.go      how init ends; kill_linux.go: with all that is left; below_linux.go: with what holds it up
//	fail_linux.go     how a failure is reported, to the harness or to standard error
//	send_linux.go     the messages to the harness
//	ops_linux.go      the one loop that runs ops
//	pass_linux.go     descriptors made inside, sent to the harness
//	dialer_linux.go   sockets of the sandbox's network for the harness
//	questions_linux.go the socket on which the supervisor asks the harness
//	place_linux.go    the ops of explicit layouts: a place in a tree that may be hostile
//	exec_linux.go     which of its paths the tool is, and where it starts
//	join_linux.go     how init comes into namespaces that exist already
//	evidence_linux.go what the kernel says of the tool, read back after execve
//
//	session_linux.go  an init that starts no tool: it takes commands, forks a warden for each, and kills what has lost its warden
//	pause_linux.go    what init does while its session is paused
//	ready_linux.go    a warden and a tool that stand ready for the next command
//	warden_linux.go   a command's own init: starts the tool, reads the evidence, supervises, reaps
//	command_linux.go  the stage of a session's command: hands it to init, passes signals on, ends as the tool ends; its relay
//
// # Sessions
//
// A sandbox of one command and a session run the same code: prepare, the ops of the stage and of init, then startTool, the ops of the tool,
// checkExecuted, serve. What differs is who calls startTool: init itself (one command), or a warden, which is a fork of init (a session).
//
//	harness --exec--> stage ---clone---> init (pid 1) --fork--> warden --vfork--> tool ... and what it starts
//	   |                                   ^  |
//	   |--exec--> command's stage ---------'  '---- kills children that are no wardens
//	                (one message with the program, the control socket, a socket for signals and the status, 0, 1, 2, ExtraFiles)
//
// Init waits for nothing but poll(2). A tool that makes something block on its way to execve (a lease on the file, a hung file
// server) suspends its warden (CLONE_VFORK), and no other command.
//
// Wardens can be replaced by an end. The tools are in one Landlock domain of scopes with init and the wardens (plan.ForSession), so that
// commands may signal each other, as shells and process managers do; a tool may therefore kill or stop any warden, its own included.
// Init answers both with the end of that command: a warden that stops is killed; what a dead warden leaves is adopted by init, whose only
// children are wardens otherwise, and is killed until there is none; then the harness is told MsgGone. That is also how a command is
// cancelled: its warden is killed, and no cooperation of a process that the tool could hold up is needed. A warden gives a tool nothing
// else: it is not dumpable, and each tool is in a Landlock layer of its own, which keeps it from tracing wardens, init and other
// commands' tools. Init is the first process of its namespace, which no signal from inside stops or kills (pid_namespaces(7)).
//
// Without a pid namespace the keeper and the stage stand outside of that domain, and do what a namespace does: the end of init is the
// session's, whoever caused it; a stopped init is killed by the keeper, its parent; and the stage or the keeper kills what init leaves.
// So a tool can end its session there, by a signal to init, and outlive it it cannot. Where Landlock has no scopes the filter
// of compile's keepers names init, the keeper and the session's stage, and each tool's layer is there all the same (plan.Apart).
//
// In a pause the wardens are stopped, too, and not killed for that; init refuses commands (pause_linux.go).
//
// Between commands one warden stands ready, with a tool's process that has been through all that is the session's and not the command's, and
// takes the next command in init's place; a command that finds none is started by a fork of init (ready_linux.go).
//
// One listener for each command: its filters are loaded by its own tool, and its warden is their supervisor. The wardens serve in
// turn (takeTurn), since the supervisor counts on it that no name changes between its check and its act.
//
// The numbers of descriptors: init's own are 512 and higher, the tools' below. So a warden puts the command's descriptors where the tool
// expects them with one dup3(2) each, in order.
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
