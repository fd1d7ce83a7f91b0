package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// toolMain runs in the tool's process, which shares init's memory and
// descriptors until execve; init is suspended meanwhile (CLONE_VFORK).
//
//go:norace
//go:nocheckptr
func toolMain() {
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_NAME, sys.Addr(&st.hdr.Name), 0, 0, 0, 0)
	if st.hdr.Flags&wire.FlagCommand != 0 {
		becomeCommands()
	}
	if (st.hdr.Flags&wire.FlagAsPID1 == 0 || run(wire.InInit)) && run(wire.InTool) {
		st.failedErrno = execTool()
		st.failedStep, st.failedWhere = wire.StepExecute, wire.InTool
	}
	for {
		sys.Call(syscall.SYS_EXIT_GROUP, wire.ExitFailed, 0, 0, 0, 0, 0)
	}
}

// resetSignals gives the tool the dispositions and the mask that os/exec would
// have given it. It runs before the filters are loaded, so that no profile has
// to allow it. The dispositions are those already that the harness's execve has left to the stage, where the stage has no Go runtime; of
// a session's tool they are those of its init, if the harness ignores the same signals as when it opened the session.
//
//go:norace
//go:nocheckptr
func resetSignals() {
	inherited := !st.threads && st.hdr.IgnoredSigs&ignoresChildren == 0 && (st.hdr.Flags&wire.FlagCommand == 0 || st.hdr.IgnoredSigs == st.ignored)
	for n := uintptr(1); n <= wire.NumberSignals && !inherited; n++ {
		st.action = sys.SigAction{}
		if st.hdr.IgnoredSigs>>(n-1)&1 != 0 {
			st.action.Handler = 1 // SIG_IGN
		}
		sys.Call(syscall.SYS_RT_SIGACTION, n, sys.Addr(&st.action), 0, 8, 0, 0)
	}
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&st.oldMask), 0, 8, 0, 0)
}

// ignoresChildren is the bit of Header.IgnoredSigs of a harness that ignores SIGCHLD: the tool does, too, and neither stage nor init.
const ignoresChildren = 1 << (syscall.SIGCHLD - 1)

// becomeCommands gives the unstarted tool what the command's stage had: the umask, and the terminal in a session of its own.
// A session of its own it has in any case: a signal to its process group is for its processes alone.
//
//go:norace
//go:nocheckptr
func becomeCommands() {
	sys.Call(syscall.SYS_UMASK, uintptr(st.request.Umask), 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	if t := st.request.Terminal; t > 0 {
		sys.Call(syscall.SYS_IOCTL, uintptr(t-1), syscall.TIOCSCTTY, 0, 0, 0, 0)
	}
}
