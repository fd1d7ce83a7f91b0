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
		killTree(uintptr(st.reg[wire.RegProc]), text("thread-self/children\x00"))
	} else if pid, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0); pid == 1 {
		// The kernel would do it, but only after it has closed the supervisor's listener
		// (do_exit calls exit_files before exit_notify): meanwhile who still runs
		// would see calls fail with ENOSYS. From pid 1, -1 is the namespace.
		sys.Call(syscall.SYS_KILL, ^uintptr(0), uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	}
	for {
		sys.Call(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0)
	}
}

//go:norace
//go:nocheckptr
func reportProbe() {
	st.message = wire.Message{Kind: wire.MsgProbe, Check: st.checks}
	send(0)
	exitInit()
}
