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
// to allow it.
//
//go:norace
//go:nocheckptr
func resetSignals() {
	for n := uintptr(1); n <= wire.NumberSignals; n++ {
		st.action = sys.SigAction{}
		if st.hdr.IgnoredSigs>>(n-1)&1 != 0 {
			st.action.Handler = 1 // SIG_IGN
		}
		sys.Call(syscall.SYS_RT_SIGACTION, n, sys.Addr(&st.action), 0, 8, 0, 0)
	}
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&st.oldMask), 0, 8, 0, 0)
}
