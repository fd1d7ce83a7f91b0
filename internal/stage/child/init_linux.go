package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

var _ = initMain // enterInit calls it, in assembly

// initMain is the whole life of init, the sandbox's first process. With a pid
// namespace its end is the end of every process inside, and the kernel sees to
// that; without one it is the subreaper that kills them.
//
// Nothing may live in a local variable across vfork: the tool's process uses
// the same stack frame.
//
//go:norace
//go:nocheckptr
func initMain() {
	if st.hdr.Flags&wire.FlagPIDNS != 0 {
		// The stage's death is ours. Its thread is its process's main thread, which
		// lives as long as the process (prctl(2) on the "parent").
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	} else {
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
		// It has still to kill the tool, and may have been stopped.
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0, 0)
	}
	sys.Call(syscall.SYS_CLOSE, st.stageSock, 0, 0, 0, 0, 0)
	st.listener = -1
	if st.hdr.Flags&wire.FlagNet != 0 {
		st.netPID = startBeside(besideNet, 0)
		if st.hdr.Flags&wire.FlagNetApart != 0 { // no process makes a user namespace while another root lies on its own (current_chrooted in fs/namespace.c)
			st.netErrno = awaitBeside(st.netPID)
		}
	}
	if st.hdr.Flags&wire.FlagAsPID1 == 0 && !run(wire.InInit) {
		failInit()
	}
	if st.hdr.Flags&wire.FlagProbe != 0 {
		reportProbe()
	}
	awaitKnown()
	if st.hdr.Flags&wire.FlagSession != 0 {
		st.early = 0 // it has no tool
		sessionMain()
	}
	if st.hdr.Flags&wire.FlagApart != 0 {
		sys.Call(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	}
	startTool()
}

// known is what the stage sends init when it has told the harness who init is, and as the answer to StatusAsked: no signal has this number.
const known = 0

// awaitKnown returns, in init, when the harness can wait for the end of init, and so for that of every tool. Where the stage has ended before, init ends. A signal that
// the stage had before is for the tool, once there is one.
//
//go:norace
//go:nocheckptr
func awaitKnown() {
	for {
		n, errno := sys.Call(syscall.SYS_RECVFROM, st.initSock, sys.Addr(&st.digits), 1, 0, 0, 0)
		if errno == uintptr(syscall.EINTR) {
			continue
		}
		if errno != 0 || n != 1 {
			exitInit()
		}
		if st.digits[0] == known {
			return
		}
		st.early |= 1 << (st.digits[0] & 63)
	}
}
