package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A process beside init, or beside a warden, shares its memory and descriptors. Two of them do what takes the kernel long and what init needs late or
// never, on another processor if one is free; the third is a witness; the
// last is a tool that stands ready (ready_linux.go). Each has a stack, and so at most one of a kind runs at a time.

// What a process beside init is for.
const (
	besideNet     = iota // it makes the network namespace
	besideDetach         // it takes the harness's root off
	besideWitness        // init tries to signal it
	besideTool           // it becomes a command's tool
	numberBeside
)

// spawn clones a process that calls besideMain on the stack that ends at top.
func spawn(flags, top uintptr) (pid uintptr)

var _ = besideMain // spawn calls it, in assembly

var besideStacks [numberBeside][16 << 10]byte

// startBeside clones the process. A negative result is clone's errno.
//
//go:norace
//go:nocheckptr
func startBeside(what uintptr) uintptr {
	top := (sys.Addr(&besideStacks) + (what+1)*unsafe.Sizeof(besideStacks[0])) &^ 15
	return spawn(sys.CLONE_VM|sys.CLONE_FILES|uintptr(syscall.SIGCHLD), top)
}

// besideMain is the whole life of the process, whose stack says what it is for: with an argument, the assembly would call it through a function
// of the compiler's that the race detector instruments. Its exit status is the errno of what it did. It writes nothing of st but what is named for it.
//
//go:norace
//go:nocheckptr
func besideMain() {
	errno := uintptr(0)
	switch (sys.Addr(&errno) - sys.Addr(&besideStacks)) / unsafe.Sizeof(besideStacks[0]) {
	case besideNet:
		errno = makeNet()
	case besideDetach:
		errno = detachRoot()
	case besideTool:
		readyTool()
	default:
		witness()
	}
	for {
		sys.Call(syscall.SYS_EXIT, errno, 0, 0, 0, 0, 0)
	}
}

// awaitBeside waits for the end of the process that startBeside has cloned, and returns the errno that it ended with.
//
//go:norace
//go:nocheckptr
func awaitBeside(pid uintptr) uintptr {
	if int(pid) < 0 {
		return -pid // clone's errno
	}
	if pid == 0 {
		return uintptr(syscall.ECHILD) // it was not started
	}
	for {
		_, errno := sys.Call(syscall.SYS_WAIT4, pid, sys.Addr(&st.waited), sys.WALL, 0, 0, 0)
		if errno == 0 {
			break
		}
		if errno != uintptr(syscall.EINTR) {
			return errno
		}
	}
	if st.waited&0x7f != 0 { // killed: wait(2)
		return uintptr(syscall.EINTR)
	}
	return uintptr(st.waited >> 8 & 0xff)
}

// startDetach has the harness's root, descriptor root, taken off beside init. umount2(2) returns only when no processor can still
// be looking a path up in what it has taken off (namespace_unlock in fs/namespace.c waits for a grace period of RCU): a tenth of a
// millisecond on an idle machine, many on a busy one. No step of init that follows reaches a mount below that root. The tool starts after awaitDetach.
//
//go:norace
//go:nocheckptr
func startDetach(root uintptr) uintptr {
	fd, errno := sys.Call(syscall.SYS_FCNTL, root, syscall.F_DUPFD_CLOEXEC, 0, 0, 0, 0) // a later step may close root
	if errno != 0 {
		return errno
	}
	st.detachFD = fd
	st.detachPID = startBeside(besideDetach)
	return 0
}

// detachRoot takes off what is mounted last at detachFD. The process's working directory is not init's.
//
//go:norace
//go:nocheckptr
func detachRoot() uintptr {
	const detach = 2 // MNT_DETACH
	_, errno := sys.Call(syscall.SYS_FCHDIR, st.detachFD, 0, 0, 0, 0, 0)
	if errno == 0 {
		_, errno = sys.Call(syscall.SYS_UMOUNT2, text(".\x00"), detach, 0, 0, 0, 0)
	}
	return errno
}

// awaitDetach waits until the harness's root is off.
//
//go:norace
//go:nocheckptr
func awaitDetach() uintptr {
	errno := awaitBeside(st.detachPID)
	sys.Call(syscall.SYS_CLOSE, st.detachFD, 0, 0, 0, 0, 0)
	return errno
}
