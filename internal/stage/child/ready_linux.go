package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// Processes that stand ready. Between commands init forks a warden for the next one, and that clones the tool's process: with its
// Landlock layer, its limits and its filters, all that is the session's and not the command's. It shares the warden's memory and
// descriptors, as a tool does until its execve, and sleeps. When the command comes, init hands it to that warden, which
// puts the descriptors in their places and wakes the tool; what is left for that is its umask, session, terminal, directory, signals, and execve.
//
//	init                    warden                        tool
//	  |------- fork --------->| ------- clone ------------>| set_tid_address: its execve or end wakes the warden
//	  |                       |                            | ops of phaseAhead
//	  |                       |<------- standing ----------| sleeps
//	  |-- request, files ---->| takeCommand, phaseWarden   |
//	  |                       |-------- released --------->| ops of phaseLate, execve
//	  |                       |<------- standing = 0 ------|
//
// Other commands' tools can signal both, as they can signal wardens. A warden that has lost its tool, or whose tool was stopped, ends, and init makes
// no other before a command has come. So a command finds both as they were made, or starts as the first one does: with a fork.

// Phases of the tool's ops; each runs in one of them.
const (
	phaseAll    = iota // a tool for which none stood ready: all at once
	phaseAhead         // what is the same for every command
	phaseWarden        // what opens files: the filters are in force already, and the warden has none
	phaseLate
)

// What st.standing says.
const (
	standsGone = iota // it has executed, or ended: the kernel writes this (set_tid_address(2))
	standsYet         // it is on its way
	standsReady
)

const futexWait, futexWake = 0, 1 // not private: the kernel's own wake is not

// phaseOf returns when an op of the tool runs.
//
//go:nosplit
//go:norace
//go:nocheckptr
func phaseOf(nr uint32) uint32 {
	switch nr {
	case wire.OpNull:
		return phaseWarden
	case wire.OpCwd, wire.OpSignals:
		return phaseLate
	}
	return phaseAhead
}

// makeReady forks a warden that stands ready, if one is wanted. One that cannot be made is missed by no command.
//
//go:norace
//go:nocheckptr
func makeReady() {
	if !st.readyWanted {
		return
	}
	st.readyWanted = false
	if st.hdr.Flags&wire.FlagReady == 0 || st.ready != 0 {
		return
	}
	var pair [2]int32
	if _, errno := sys.Call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0, sys.Addr(&pair), 0, 0); errno != 0 {
		return
	}
	pid, errno := sys.Call(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		st.readySock = uintptr(pair[1])
		readyMain()
	}
	sys.Call(syscall.SYS_CLOSE, uintptr(pair[1]), 0, 0, 0, 0, 0)
	st.ready, st.readySock = pid, uintptr(pair[0])
	if errno != 0 {
		forgetReady()
	}
}

// forgetReady closes init's way to the warden that stood ready.
//
//go:norace
//go:nocheckptr
func forgetReady() {
	sys.Call(syscall.SYS_CLOSE, st.readySock, 0, 0, 0, 0, 0)
	st.ready, st.readySock = 0, 0
}

// handToReady hands the command that has come in n bytes to the warden that stands ready, as startWarden does to one of its own. False: there is none,
// or it is of no use to the command.
//
//go:norace
//go:nocheckptr
func handToReady(n, count uintptr) bool {
	place := freePlace()
	if st.ready == 0 || st.request.Ready == 0 || place < 0 {
		return false
	}
	st.iovec[0] = [2]uintptr{sys.Addr(&st.request), n}
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: 1, control: sys.Addr(&st.passed), controllen: (16 + 4*count + 7) &^ 7}
	if _, errno := sys.Call(syscall.SYS_SENDMSG, st.readySock, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL|sys.MSG_DONTWAIT, 0, 0, 0); errno != 0 {
		return false // it has ended: reapWardens hears of it
	}
	st.commands[place&(wire.MaxCommands-1)] = command{warden: st.ready, control: uintptr(st.passed.fds[1])}
	st.passed.fds[1] = -1
	forgetReady()
	return true
}

// readyMain is the whole life of a warden that stands ready.
//
//go:norace
//go:nocheckptr
func readyMain() {
	becomeWarden()
	st.ready, st.readySock = 0, raised(st.readySock)
	sys.Call(sys.SYS_CLOSE_RANGE, 0, internals-1, 0, 0, 0, 0)
	st.signals = raised(uintptr(childSignals()))
	prepareSupervisor()
	st.standing, st.released, st.phase = standsYet, 0, phaseAhead
	st.toolPID = startBeside(besideTool)
	if int(st.toolPID) < 0 || !awaitTool(standsYet) {
		exitInit()
	}
	if st.listener >= 0 {
		st.listener = int64(raised(uintptr(st.listener)))
	}
	takeCommand(awaitRequest())
	if toolChanged() {
		startAnother()
	}
	st.phase = phaseWarden
	if !run(wire.InTool) {
		failInit()
	}
	// The system calls since have ordered what was written for the tool before this word (arm64).
	st.phase, st.warmth = phaseLate, wire.Warm
	toolChanged()
	st.released = 1
	sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.released), futexWake, 1, 0, 0, 0)
	tellWarden() // while the tool is on its way
	leaveReady()
	awaitTool(standsReady)
	superviseTool()
}

// leaveReady closes what a warden has only while it stands ready.
//
//go:norace
//go:nocheckptr
func leaveReady() {
	sys.Call(syscall.SYS_CLOSE, st.readySock, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.signals, 0, 0, 0, 0, 0)
}

// awaitTool sleeps until the tool's process is past a stage of its life, and reports whether it lives. The kernel wakes the warden at
// execve and at the end, unless the process ended before it had asked for that.
//
//go:norace
//go:nocheckptr
func awaitTool(past uint32) bool {
	second := [2]int64{1, 0} // struct timespec
	for st.standing == past {
		if _, errno := sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.standing), futexWait, uintptr(past), sys.Addr(&second), 0, 0); errno == uintptr(syscall.ETIMEDOUT) && toolDied() {
			return false
		}
	}
	return st.standing == standsReady
}

// awaitRequest sleeps until the command comes, and returns with how many descriptors.
//
//go:norace
//go:nocheckptr
func awaitRequest() uintptr {
	const (
		request = iota
		child
	)
	st.poll = [5]sys.PollFD{request: {FD: int32(st.readySock), Events: sys.POLLIN}, child: {FD: int32(st.signals), Events: sys.POLLIN}, 2: {FD: -1}, 3: {FD: -1}, 4: {FD: -1}}
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), 0, 0, 0, 0); errno == uintptr(syscall.EINVAL) {
			exitInit()
		}
		if st.poll[request].Revents != 0 {
			n, count, errno := receiveRequest(st.readySock)
			if errno == 0 && n >= leastRequest && count >= wire.PassedFirst {
				return count
			}
			if errno != uintptr(syscall.EAGAIN) && errno != uintptr(syscall.EINTR) {
				exitInit() // init is gone, or its message did not come whole
			}
		} else if st.poll[child].Revents != 0 {
			sys.Call(syscall.SYS_READ, st.signals, sys.Addr(&st.siginfo), unsafe.Sizeof(st.siginfo), 0, 0, 0)
			if toolChanged() { // and no other process has sent SIGCHLD
				exitInit() // init kills what is left of it
			}
		}
	}
}

// toolChanged reports whether the tool's process has ended or was stopped.
//
//go:norace
//go:nocheckptr
func toolChanged() bool {
	const pPID, wStopped, wExited, wNoWait = 1, 2, 4, 0x1000000
	clear(st.siginfo[:])
	_, errno := sys.Call(syscall.SYS_WAITID, pPID, st.toolPID, sys.Addr(&st.siginfo), wStopped|wExited|sys.WNOHANG|wNoWait, 0, 0)
	return errno != 0 || st.siginfo[0] == byte(syscall.SIGCHLD)
}

// startAnother starts the tool's process anew: the one that stood ready was killed or stopped. It is the rest of the warden's life.
//
//go:norace
//go:nocheckptr
func startAnother() {
	leaveReady()
	tellWarden()
	sys.Call(syscall.SYS_KILL, st.toolPID, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	for {
		if _, errno := sys.Call(syscall.SYS_WAIT4, st.toolPID, sys.Addr(&st.waited), sys.WALL, 0, 0, 0); errno != uintptr(syscall.EINTR) {
			break
		}
	}
	if st.listener >= 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(st.listener), 0, 0, 0, 0, 0)
		st.listener = -1
	}
	st.phase, st.failedErrno, st.warmth = phaseAll, 0, wire.ColdKilled
	startTool()
}

// readyTool is the tool's process, from its clone to its execve.
//
//go:norace
//go:nocheckptr
func readyTool() {
	sys.Call(syscall.SYS_SET_TID_ADDRESS, sys.Addr(&st.standing), 0, 0, 0, 0, 0)
	if !run(wire.InTool) {
		return
	}
	st.standing = standsReady
	sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.standing), futexWake, 1, 0, 0, 0)
	for st.released == 0 {
		sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.released), futexWait, 0, 0, 0, 0)
	}
	// Signals that other commands sent meanwhile were not for this one. They are blocked until OpSignals.
	st.sigset = ^uint64(0)
	for range 4096 {
		if _, errno := sys.Call(syscall.SYS_RT_SIGTIMEDWAIT, sys.Addr(&st.sigset), sys.Addr(&st.siginfo), sys.Addr(&st.zeroTime), 8, 0, 0); errno != 0 {
			break
		}
	}
	toolMain()
}
