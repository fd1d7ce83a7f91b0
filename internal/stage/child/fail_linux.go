package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// fail reports what is in st.failed* and ends the stage.
//
//go:norace
//go:nocheckptr
func fail() {
	reportFailure()
	sys.Call(syscall.SYS_EXIT_GROUP, exitCode(), 0, 0, 0, 0, 0)
}

// reportFailure tells the harness, and, when no harness is there to make an error of
// it, the tool's standard error.
//
//go:norace
//go:nocheckptr
func reportFailure() {
	st.message = wire.Message{Kind: wire.MsgFailed, Step: st.failedStep, Where: st.failedWhere, Errno: int32(st.failedErrno)}
	send(st.used)
	if st.hdr.Flags&wire.FlagQuiet != 0 {
		return
	}
	base, name := st.base, wire.Span{}
	switch {
	case st.failedStep < st.plan.Steps.Len:
		base, name = st.planBase, *(*wire.Span)(atPlan(st.plan.Steps.Off + st.failedStep*uint32(unsafe.Sizeof(name))))
	case st.failedStep == wire.StepExecute:
		name = wire.Span{Off: st.hdr.Path, Len: length(st.hdr.Path)}
	}
	number := decimal(&st.digits, st.failedErrno)
	const prefix, middle, end = "holdfast: ", ": errno ", "\n"
	st.iovec[0] = [2]uintptr{text(prefix), uintptr(len(prefix))}
	st.iovec[1] = [2]uintptr{base + uintptr(name.Off), uintptr(name.Len)}
	st.iovec[2] = [2]uintptr{text(middle), uintptr(len(middle))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 3, 0, 0, 0)
	st.iovec[0] = [2]uintptr{sys.Addr(&st.digits) + number, uintptr(len(st.digits)) - number}
	st.iovec[1] = [2]uintptr{text(end), uintptr(len(end))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 2, 0, 0, 0)
}

// printError writes a sentence to standard error.
//
//go:norace
//go:nocheckptr
func printError(why string) {
	const prefix, end = "holdfast: ", "\n"
	st.iovec[0] = [2]uintptr{text(prefix), uintptr(len(prefix))}
	st.iovec[1] = [2]uintptr{text(why), uintptr(len(why))}
	st.iovec[2] = [2]uintptr{text(end), uintptr(len(end))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 3, 0, 0, 0)
}

// check ends the stage when something fails that cannot fail on a kernel that
// the harness's probe accepted.
//
//go:norace
//go:nocheckptr
func check(_, errno uintptr) {
	if errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepPrepare, errno, wire.InStage
		fail()
	}
}

// exitCode is the stage's exit code for the failure in st.failed*.
//
//go:norace
//go:nocheckptr
func exitCode() uintptr {
	if st.failedStep != wire.StepExecute {
		return wire.ExitFailed
	}
	if st.failedErrno == uintptr(syscall.ENOENT) {
		return wire.ExitNotFound
	}
	return wire.ExitNotRunnable
}
