package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A warden stands between init and the tool of one command of a session. It does for the command what init does for a
// sandbox of one: it starts the tool, reads the evidence, is the supervisor of the command's filters, and reaps. It is a
// subreaper, so that what the tool leaves behind stays the command's, whatever session or group it goes to.
//
// It is a fork of init: not filtered, in init's Landlock domain and not in the tool's, not dumpable. It ends when no
// process of the command is left, or as soon as the command's stage is gone before the tool has ended;
// init kills what it then leaves.

// wardenMain is a warden's whole life. The first count descriptors of st.passed are the command's.
//
//go:norace
//go:nocheckptr
func wardenMain(count uintptr) {
	becomeWarden()
	sys.Call(syscall.SYS_CLOSE, st.entrance, 0, 0, 0, 0, 0)
	takeCommand(count)
	tellWarden()
	prepareSupervisor()
	startTool()
}

// becomeWarden lets go of what is init's.
//
//go:norace
//go:nocheckptr
func becomeWarden() {
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	for _, fd := range [...]uintptr{st.session, st.initSock, st.childrenFD, st.signals} {
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	if st.reg[wire.RegDialer] > 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(st.reg[wire.RegDialer]), 0, 0, 0, 0, 0)
	}
	st.reg[wire.RegDialer] = -1
}

// takeCommand puts the command's program and descriptors in their places.
//
//go:norace
//go:nocheckptr
func takeCommand(count uintptr) {
	extra := count - wire.PassedFirst
	if why := load(uintptr(st.passed.fds[0]), int32(extra)); why != "" || !relocate() {
		exitInit()
	}
	st.control, st.initSock = raisedCopy(uintptr(st.passed.fds[1])), raisedCopy(uintptr(st.passed.fds[2])) // closed below
	// The kernel has numbered them upwards (receive_fd): each is higher than the number that it gets, and none
	// of those is still to be moved.
	for i := range extra {
		flags := uintptr(0)
		if st.request.Gaps[i>>6&3]>>(i&63)&1 != 0 {
			flags = syscall.O_CLOEXEC
		}
		sys.Call(syscall.SYS_DUP3, uintptr(st.passed.fds[(wire.PassedFirst+i)&255]), i, flags, 0, 0, 0)
	}
	sys.Call(sys.SYS_CLOSE_RANGE, extra, internals-1, 0, 0, 0, 0)

	st.cwdError, st.oldMask = uintptr(st.request.CwdErrno), st.request.Mask
}

// tellWarden tells the command's harness who the warden is.
//
//go:norace
//go:nocheckptr
func tellWarden() {
	own, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	pidfd, errno := sys.Call(sys.SYS_PIDFD_OPEN, own, 0, 0, 0, 0, 0)
	if errno != 0 {
		exitInit()
	}
	st.message = wire.Message{Kind: wire.MsgInit, Value: -int64(own)}
	sendHeld(int64(pidfd))
	sys.Call(syscall.SYS_CLOSE, pidfd, 0, 0, 0, 0, 0)
}

// prepareSupervisor makes the state of the command's supervisor.
//
//go:norace
//go:nocheckptr
func prepareSupervisor() {
	makeSupervisor()
	if st.supervisor != nil {
		supervisor.KeepApart(st.supervisor)
		if st.pair[0] > 0 {
			supervisor.Share(st.supervisor, int(st.pair[0]), int(st.pair[1]), uint(st.initPID))
		}
	}
	st.listener = -1
}
