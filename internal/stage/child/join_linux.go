package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A process with threads, as the stage is one, cannot enter a user namespace
// (setns(2)), and one that enters a pid namespace only sends its children there.
// So init of a sandbox that joins namespaces is cloned by a process in between,
// which shares the stage's memory and descriptors, enters, clones init as its own
// sibling, and ends.

const cloneParent = 0x8000

// joinAndClone is cloneInit for such a sandbox.
//
//go:noinline
//go:norace
//go:nocheckptr
func joinAndClone(flags, top uintptr) (uintptr, int32, uintptr) {
	roomOnStack()
	st.initFlags, st.initTop, st.joinErrno = flags|cloneParent, top, 0
	st.initPID = vfork(sys.CLONE_VM | sys.CLONE_VFORK | sys.CLONE_FILES | uintptr(syscall.SIGCHLD))
	if st.initPID == 0 {
		enterNamespaces()
	}
	if int(st.initPID) < 0 {
		return 0, -1, -st.initPID
	}
	sys.Call(syscall.SYS_WAIT4, st.initPID, 0, sys.WALL, 0, 0, 0)
	// Entering has changed the credentials, and with them the shared memory's mark.
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_DUMPABLE, 1, 0, 0, 0, 0)
	return ^uintptr(0), st.pidfd, st.joinErrno // wait4(-1): init is the one child left
}

// enterNamespaces runs in the process in between. That shares the goroutine with the stage, whose runtime, where there is one,
// may ask the goroutine to yield at any time (see cloneHelper): so neither it nor what it calls checks the stack.
//
//go:nosplit
//go:norace
//go:nocheckptr
func enterNamespaces() {
	if n := st.hdr.JoinUser; n > 0 {
		enter(n, sys.CLONE_NEWUSER)
	}
	if n := st.hdr.JoinPID; n > 0 {
		enter(n, sys.CLONE_NEWPID)
		if st.initFlags&sys.CLONE_NEWPID != 0 && st.joinErrno == 0 {
			// A namespace below the joined one has to be made from inside it.
			pid := vfork(sys.CLONE_VM | sys.CLONE_VFORK | sys.CLONE_FILES | cloneParent | uintptr(syscall.SIGCHLD))
			if pid != 0 {
				endBetween()
			}
		}
	}
	if st.joinErrno == 0 {
		pid, errno := sys.Call(syscall.SYS_CLONE, st.initFlags, 0, sys.Addr(&st.pidfd), 0, 0, 0)
		if pid == 0 && errno == 0 {
			enterInit(st.initTop)
		}
		st.joinErrno = errno
	}
	endBetween()
}

//go:nosplit
//go:norace
//go:nocheckptr
func enter(given int32, kind uintptr) {
	if st.joinErrno != 0 {
		return
	}
	fd := uintptr(st.reg[(wire.RegGiven+given-1)&(wire.MaxRegisters-1)])
	_, st.joinErrno = sys.Call(sysSetns, fd, kind, 0, 0, 0, 0)
}

// endBetween ends a process between the stage and init.
//
//go:nosplit
//go:norace
//go:nocheckptr
func endBetween() {
	for {
		sys.Call(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// roomOnStack makes the goroutine's stack large enough for what the process in
// between calls: it must not ask the runtime for a larger one.
//
//go:noinline
//go:norace
//go:nocheckptr
func roomOnStack() {
	var room [8 << 10]byte
	sys.Call(syscall.SYS_GETCWD, sys.Addr(&room), 1, 0, 0, 0, 0)
}

// takeGiven files the descriptors that the policy gave, keeps them from the tool,
// and closes everything else from first on.
//
//go:norace
//go:nocheckptr
func takeGiven(first uintptr) {
	n, from := uintptr(st.hdr.Given), uintptr(st.hdr.GivenFD)
	if n == 0 {
		from = first
	} else if from > first {
		check(sys.Call(sys.SYS_CLOSE_RANGE, first, from-1, 0, 0, 0, 0))
	}
	check(sys.Call(sys.SYS_CLOSE_RANGE, from+n, ^uintptr(0)>>32, 0, 0, 0, 0))
	for i := range n {
		fd := from + i
		st.reg[(wire.RegGiven+i)&(wire.MaxRegisters-1)] = int64(fd)
		if st.hdr.Flags&wire.FlagCommand != 0 {
			continue
		}
		sys.Call(syscall.SYS_FCNTL, fd, syscall.F_SETFD, syscall.FD_CLOEXEC, 0, 0, 0)
	}
}

// closeGivenFDs closes them, but for the record of what tools have made.
//
//go:norace
//go:nocheckptr
func closeGivenFDs() {
	for i := range st.hdr.Given {
		if i+1 == st.hdr.Made {
			continue
		}
		sys.Call(syscall.SYS_CLOSE, uintptr(st.reg[(wire.RegGiven+i)&(wire.MaxRegisters-1)]), 0, 0, 0, 0, 0)
	}
}
