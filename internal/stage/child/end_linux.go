package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// failInit reports the failure in st.failed* to everybody and ends init.
//
//go:norace
//go:nocheckptr
func failInit() {
	reportFailure()
	st.status = wire.StatusRecord{Kind: wire.StatusFailed, Status: uint32(exitCode())}
	endInit()
}

// endInit gives the stage its record and ends; the sandbox dies with it.
//
//go:norace
//go:nocheckptr
func endInit() {
	sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&st.status), unsafe.Sizeof(st.status), sys.MSG_NOSIGNAL, 0, 0)
	exitInit()
}

// exitInit ends init with all that is left. Of a warden init kills that.
//
//go:norace
//go:nocheckptr
func exitInit() {
	if st.hdr.Flags&(wire.FlagPIDNS|wire.FlagCommand) == 0 {
		endTree(uintptr(st.reg[wire.RegProc]), text("thread-self/children\x00"))
	} else if pid, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0); pid == 1 && hasChild() {
		// The kernel would do it, but only after it has closed the supervisor's listener
		// (do_exit calls exit_files before exit_notify): meanwhile who still runs
		// would see calls fail with ENOSYS. From pid 1, -1 is the namespace.
		sys.Call(syscall.SYS_KILL, ^uintptr(0), uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	}
	for {
		sys.Call(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

// hasChild reports whether init has a child that it has not reaped. Without one its namespace is empty: a process that loses its parent
// becomes init's child. kill(2) with -1 looks at every process of the machine.
//
//go:norace
//go:nocheckptr
func hasChild() bool {
	_, errno := sys.Call(syscall.SYS_WAIT4, ^uintptr(0), 0, sys.WNOHANG|sys.WALL, 0, 0, 0)
	return errno != uintptr(syscall.ECHILD)
}

//go:norace
//go:nocheckptr
func reportProbe() {
	st.message = wire.Message{Kind: wire.MsgProbe, Check: st.checks}
	send(0)
	exitInit()
}
