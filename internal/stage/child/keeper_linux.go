package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// Without a pid namespace the stage, init and the tool are in one process group, as
// passSignal needs it, and a SIGKILL to the group ends all three at once: then
// no process would be left to kill what the tool has moved into another session. So a
// keeper stands between the stage and init, in another session. It is a
// subreaper, and when the stage is gone kills what is left: an init that has not ended with everything by itself, and what
// init's end leaves to it. A stage that ends in order has the keeper do that first (endKeeper): if it killed the keeper, and was
// itself killed before the rest, what is left would have lost both. While the stage lives the keeper does one other thing: it kills an init
// that was stopped, as the tools of a session can do where Landlock's scope is around init, too.
//
// In another session, and not in another process group alone, its end is nothing to
// the group: a parent in another group of the same session, when it ends, leaves an
// orphaned group, whose processes the kernel sends SIGHUP if one of them is stopped
// (kill_orphaned_pgrp in kernel/exit.c), and the harness is one of them.

// The keeper is a process beside the stage (beside_linux.go), and has its memory: a fork, with the pages that both then write, would be a seventh of the
// start. Its descriptors are its own as soon as init is cloned. What ends one process for the other's sake are a core dump, before Linux 5.16, and the
// kernel's choice for want of memory. A stage that shares its memory is not dumpable. An init that has lost both ends with all that is left, when it reads the
// end of its socket; what holds it up until then the harness kills (Passed of stage.Control).

// cloneKept is cloneInit with a keeper in between.
//
//go:norace
//go:nocheckptr
func cloneKept(flags, top uintptr) (uintptr, int32, uintptr) {
	st.initFlags, st.initTop = flags, top
	st.stagePID, _ = sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	memory := uintptr(sys.CLONE_VM)
	if st.threads {
		memory = 0 // the Go runtime around the stage (init in hook_linux.go) writes into the g that the keeper's functions would look at
	}
	pid := spawn(memory|sys.CLONE_FILES|sys.CLONE_PIDFD|uintptr(syscall.SIGCHLD), besideTop(besideKeeper), sys.Addr(&st.keeperFD))
	if int(pid) < 0 {
		return 0, -1, -pid
	}
	st.keeperPID = pid
	return awaitKeeper()
}

// awaitKeeper reads the keeper's record. Init may have told its end before.
//
//go:norace
//go:nocheckptr
func awaitKeeper() (uintptr, int32, uintptr) {
	for {
		st.poll[0] = sys.PollFD{FD: int32(st.stageSock), Events: sys.POLLIN}
		st.poll[1] = sys.PollFD{FD: st.keeperFD, Events: sys.POLLIN}
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), 2, 0, 0, 0, 0); errno != 0 {
			continue
		}
		if st.poll[0].Revents == 0 {
			return 0, -1, uintptr(syscall.ECHILD) // the keeper was killed
		}
		n, errno := sys.Call(syscall.SYS_RECVFROM, st.stageSock, sys.Addr(&st.message), unsafe.Sizeof(st.message), sys.MSG_DONTWAIT, 0, 0)
		switch {
		case errno != 0:
		case n == unsafe.Sizeof(keeperRecord{}):
			kept := (*keeperRecord)(unsafe.Pointer(&st.message))
			return kept.pid, int32(kept.pidfd), kept.errno
		case n == unsafe.Sizeof(st.status):
			st.status = *(*wire.StatusRecord)(unsafe.Pointer(&st.message))
		}
	}
}

// keeperMain is the keeper's whole life. It writes nothing of st but its own number, which init is to know: what it calls keeps all on the stack.
//
//go:norace
//go:nocheckptr
func keeperMain() {
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0, 0) // it has still to kill what is left, and may have been stopped
	st.keeperPID, _ = sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	pidfd := int32(0)
	pid, errno := sys.Call(syscall.SYS_CLONE, st.initFlags, 0, sys.Addr(&pidfd), 0, 0, 0)
	if pid == 0 && errno == 0 {
		awaitKeepersSession()
		enterInit(st.initTop)
	}
	kept := keeperRecord{pid, uintptr(pidfd), errno}
	sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&kept), unsafe.Sizeof(kept), sys.MSG_NOSIGNAL, 0, 0)
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_DUMPABLE, 0, 0, 0, 0, 0) // the memory, and with it the stage
	const unshareTable = 2                                          // CLOSE_RANGE_UNSHARE
	sys.Call(sys.SYS_CLOSE_RANGE, 0, ^uintptr(0)>>32, unshareTable, 0, 0, 0)
	// The last: init goes on from here, and with it the tool. The stage knows of init by
	// then, so that it tells the harness of a keeper that is killed once the tool runs.
	sys.Call(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	awaitStagesEnd(pid)
	awaitInit(pid)
	killTree(atCwd, text("/proc/thread-self/children\x00"))
	removeOwn()
	endBetween()
}

// awaitKeepersSession returns, in init, when the keeper has left the session: from then
// on a SIGKILL to the group does not end it. With a keeper that ends before, init ends.
//
//go:norace
//go:nocheckptr
func awaitKeepersSession() {
	own, _ := sys.Call(syscall.SYS_GETSID, 0, 0, 0, 0, 0, 0)
	for {
		parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
		if parent != st.keeperPID {
			endBetween()
		}
		if its, errno := sys.Call(syscall.SYS_GETSID, parent, 0, 0, 0, 0, 0); errno == 0 && its != own {
			return
		}
		sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
	}
}

// endKeeper asks the keeper, in the stage, to kill what is left, and waits for its end. Of an init that is stuck the keeper could not end either.
//
//go:norace
//go:nocheckptr
func endKeeper() {
	st.poll[0] = sys.PollFD{FD: st.pidfd, Events: sys.POLLIN}
	n, _ := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), 1, sys.Addr(&st.zeroTime), 0, 0, 0)
	if st.keeperFD <= 0 || n != 1 {
		return
	}
	sys.Call(sys.SYS_PIDFD_SEND_SIGNAL, uintptr(st.keeperFD), uintptr(endsKeeper), 0, 0, 0, 0)
	sys.Call(sys.SYS_PIDFD_SEND_SIGNAL, uintptr(st.keeperFD), uintptr(syscall.SIGCONT), 0, 0, 0, 0) // it may have been stopped
	limit := [2]int64{20, 0}                                                                        // as long as killTree tries; ppoll(2) counts it down
	st.poll[0].FD = st.keeperFD
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), 1, sys.Addr(&limit), 0, 0, 0); errno != uintptr(syscall.EINTR) {
			return
		}
	}
}

// awaitInit waits a second, in the keeper, for init, which has read the end of its socket and ends with all that is left: killed before that, it would leave this to the
// keeper alone, which may be killed as the stage was. What has stopped init has not stopped its end.
//
//go:norace
//go:nocheckptr
func awaitInit(pid uintptr) {
	if ended, errno := sys.Call(syscall.SYS_WAIT4, pid, 0, sys.WNOHANG|sys.WALL, 0, 0, 0); errno != 0 || ended != 0 {
		return
	}
	fd, errno := sys.Call(sys.SYS_PIDFD_OPEN, pid, 0, 0, 0, 0, 0)
	if errno != 0 {
		return
	}
	sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGCONT), 0, 0, 0, 0)
	limit := [2]int64{1, 0} // ppoll(2) counts it down
	poll := sys.PollFD{FD: int32(fd), Events: sys.POLLIN}
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&poll), 1, sys.Addr(&limit), 0, 0, 0); errno != uintptr(syscall.EINTR) {
			return
		}
	}
}

// endsKeeper is the signal by which the stage asks. The keeper blocks every signal.
const endsKeeper = syscall.SIGPWR

// awaitStagesEnd returns when the stage is dead, or asks. Until then it kills an init that was stopped: the stage sees the end. What others send it, it passes
// to init, for the tool's children.
//
//go:norace
//go:nocheckptr
func awaitStagesEnd(init uintptr) {
	fd, errno := sys.Call(sys.SYS_PIDFD_OPEN, st.stagePID, 0, 0, 0, 0, 0)
	parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	if errno != 0 || parent != st.stagePID {
		return
	}
	set := uint64(1<<(syscall.SIGCHLD-1) | 1<<(endsKeeper-1) | childrensSignals)
	signals, _ := sys.Call(sysSignalfd4, ^uintptr(0), sys.Addr(&set), 8, sys.SFD_CLOEXEC|sys.SFD_NONBLOCK, 0, 0)
	for {
		poll := [2]sys.PollFD{{FD: int32(fd), Events: sys.POLLIN}, {FD: int32(signals), Events: sys.POLLIN}}
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&poll), uintptr(len(poll)), 0, 0, 0, 0); errno != 0 {
			continue
		}
		if poll[0].Revents != 0 {
			return
		}
		var info [128]byte // struct signalfd_siginfo
		sys.Call(syscall.SYS_READ, signals, sys.Addr(&info), unsafe.Sizeof(info), 0, 0, 0)
		const sender = 12 // ssi_pid: another's endsKeeper changes nothing
		if info[0] == byte(endsKeeper) && uintptr(*(*uint32)(unsafe.Pointer(&info[sender]))) == st.stagePID {
			return
		}
		if init != 0 && uint64(childrensSignals)<<1>>(info[0]&63)&1 != 0 {
			sys.Call(syscall.SYS_KILL, init, uintptr(info[0]), 0, 0, 0, 0)
		}
		waited := uint32(0)
		pid, errno := sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&waited), sys.WNOHANG|sys.WUNTRACED|sys.WALL, 0, 0, 0)
		if errno == 0 && pid != 0 && waited&0xff == 0x7f {
			sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		} else if errno == 0 && pid == init {
			init = 0 // its number can be another's
		}
	}
}

// firstProcess returns init's number, in the tool's process: that of its parent, or, where that is a warden, the session's init.
//
//go:norace
//go:nocheckptr
func firstProcess() uintptr {
	if st.hdr.Flags&(wire.FlagCommand|wire.FlagSession) != 0 { // with FlagSession it stands ready
		return st.initPID
	}
	parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	return parent
}

// ownPID carries out OpOwnPID, in the tool's process.
//
//go:norace
//go:nocheckptr
func ownPID(addr, which uintptr) uintptr {
	n, group := uintptr(0), false
	switch which {
	case wire.OwnStage:
		if st.threads { // each has a number, and any of them reaches the process
			return uintptr(syscall.EOPNOTSUPP)
		}
		n = st.stagePID
	case wire.OwnKeeper, wire.OwnKeeperGroup:
		n, group = st.keeperPID, which == wire.OwnKeeperGroup
	case wire.OwnInit, wire.OwnInitGroup:
		n, group = firstProcess(), which == wire.OwnInitGroup
	case wire.OwnGroup:
		n, _ = sys.Call(syscall.SYS_GETPGID, st.stagePID, 0, 0, 0, 0, 0)
		if group = true; n == 0 {
			n = 1 // the harness's group was begun outside of its pid namespace: no number names it, and -1 stands in the filter anyway
		}
	}
	if n == 0 {
		return uintptr(syscall.ESRCH)
	}
	if group {
		n = -n
	}
	*(*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))) = uint32(n)
	return 0
}
