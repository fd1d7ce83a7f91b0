package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A process beside init, a warden or a stage without a Go runtime shares its memory and descriptors. Each has a stack, and so at most one of a kind
// runs at a time. Those for the network and the harness's root do what takes the kernel long, and what init needs late or never, on another processor
// if one is free.

// What a process beside another is for.
const (
	besideNet     = iota // it makes the network namespace
	besideApart          // it raises lo in the one that it is cloned into
	besideDetach         // it takes the harness's root off
	besideWitness        // init tries to signal it
	besideTool           // beside a warden: it becomes a command's tool (ready_linux.go)
	besideKeeper         // beside the stage (keeper_linux.go)
	numberBeside
)

// spawn clones a process that calls besideMain on the stack that ends at top. With CLONE_PIDFD its pidfd's number is written at pidfd.
func spawn(flags, top, pidfd uintptr) (pid uintptr)

var _ = besideMain // spawn calls it, in assembly

// besideStacks have room for removeDepth frames of removal.below, which the keeper calls. Only what is touched takes memory.
var besideStacks [numberBeside][64 << 10]byte

// startBeside clones the process, into new namespaces if flags says so. A negative result is clone's errno.
//
//go:norace
//go:nocheckptr
func startBeside(what, flags uintptr) uintptr {
	return spawn(sys.CLONE_VM|sys.CLONE_FILES|uintptr(syscall.SIGCHLD)|flags, besideTop(what), 0)
}

// besideTop returns the end of the stack of such a process.
//
//go:norace
//go:nocheckptr
func besideTop(what uintptr) uintptr {
	return (sys.Addr(&besideStacks) + (what+1)*unsafe.Sizeof(besideStacks[0])) &^ 15
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
	case besideApart:
		errno = raiseLoopback()
	case besideDetach:
		errno = detachRoot()
		st.detachErrno = errno
	case besideTool:
		readyTool()
	case besideKeeper:
		keeperMain()
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
// millisecond on an idle machine, many on a busy one. No step of init or the tool's process that follows reaches a mount below that
// root. The tool is executed after rootOff.
//
//go:norace
//go:nocheckptr
func startDetach(root uintptr) uintptr {
	fd, errno := sys.Call(syscall.SYS_FCNTL, root, syscall.F_DUPFD_CLOEXEC, 0, 0, 0, 0) // a later step may close root
	if errno != 0 {
		return errno
	}
	st.detachFD, st.detachErrno = fd, uintptr(syscall.EINTR) // killed: it has not written what became of it
	st.detachPID = startBeside(besideDetach, 0)
	if int(st.detachPID) < 0 {
		return -st.detachPID
	}
	if st.detachPidfd, errno = sys.Call(sys.SYS_PIDFD_OPEN, st.detachPID, 0, 0, 0, 0, 0); errno != 0 {
		st.detachPidfd = ^uintptr(0) // init waits by itself
	}
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

// awaitDetach waits until the harness's root is off, in init. With later the tool's process does that, if init starts one, by a pidfd.
//
//go:norace
//go:nocheckptr
func awaitDetach(later uintptr) uintptr {
	if later != 0 && st.hdr.Flags&(wire.FlagProbe|wire.FlagSession) == 0 && int(st.detachPidfd) >= 0 {
		return 0
	}
	errno := awaitBeside(st.detachPID)
	endDetach()
	st.detached = errno == 0
	return errno
}

// rootOff waits until the harness's root is off, in the tool's process, whose sibling is the process that takes it off: init reaps that.
//
//go:norace
//go:nocheckptr
func rootOff() uintptr {
	if st.detached {
		return 0 // the session's init has waited
	}
	for {
		st.poll[0] = sys.PollFD{FD: int32(st.detachPidfd), Events: sys.POLLIN}
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), 1, 0, 0, 0, 0)
		if errno == 0 && n == 1 && st.poll[0].Revents&sys.POLLIN != 0 {
			break
		}
		if errno != uintptr(syscall.EINTR) {
			return max(errno, 1) // EPERM: no pidfd
		}
	}
	endDetach()
	return st.detachErrno
}

//go:norace
//go:nocheckptr
func endDetach() {
	sys.Call(syscall.SYS_CLOSE, st.detachFD, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.detachPidfd, 0, 0, 0, 0, 0)
}
