// Package child is the stage's own half: what the re-executed program does
// before and while the tool runs. Importing it is what makes a program able to
// be its own stage.
//
// Read it in the order in which it runs:
//
//	hook_linux.go     init: is this process a stage? Then it never returns.
//	program_linux.go  find the sealed program, map it, make offsets pointers
//	stage_linux.go    InStage's ops, clone init, then mind it: deadline, harness's death, end as the tool ended
//	init_linux.go     InInit's ops, start the tool, report, forward signals, reap, kill what is left
//	tool_linux.go     InTool's ops, then execve
//	ops_linux.go      the one loop that runs ops
//	evidence_linux.go what the kernel says of the tool, read back after execve
//
// # The rules
//
// Nothing here may import more than syscall, unsafe, wire, sys and guard: this
// package's init runs before those of every package that imports more, and a
// stage pays for each.
//
// From the moment init is cloned, its code runs in a process that holds one
// thread of a Go program: no scheduler, no garbage collector, nobody to take a
// lock from. It runs on a stack of its own, 256 KiB, where the check at the head
// of each Go function is made to pass (enterInit), so that no function asks the
// runtime for a larger one. Every function it reaches allocates nothing, takes no
// lock, cannot panic, is go:norace, and keeps its data in the package's one
// static variable. A test reads the machine code: these functions call each
// other, the raw system call and the stack check's never-taken way out, and
// nothing else of the runtime. The tool's process shares even its memory with
// init until it executes, so what must outlive it is there too.
//
// The functions are not go:nosplit: the linker's limit for such chains is some
// 800 bytes, and a program built without optimisations, as debuggers want it,
// would not link.
package child
