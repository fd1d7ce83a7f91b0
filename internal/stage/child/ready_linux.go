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
//	  |<-- control socket ----| takeNext: from the entrance|
//	  |                       | takeCommand, phaseWarden   |
//	  |                       |-------- released --------->| ops of phaseLate, execve
//	  |                       |<------- standing = 0 ------|
//
// The entrance is a socket for such commands alone, which init leaves to the warden while there is one. The command's control socket lies in init's
// socket before the tool is released; init reads it when the warden closes its end after that, or has ended. A command whose warden is killed
// earlier has no process yet, and its stage sees the end of its socket. The session's other socket is init's alone: its end tells the harness that
// init is dead.
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
	if !st.readyWanted || st.paused != 0 {
		return
	}
	st.readyWanted = false
	if st.hdr.Flags&wire.FlagReady == 0 || st.ready != 0 || freePlace() < 0 {
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
	closeReady()
	st.ready = 0
}

//go:norace
//go:nocheckptr
func closeReady() {
	if st.readySock != noSocket {
		sys.Call(syscall.SYS_CLOSE, st.readySock, 0, 0, 0, 0, 0)
		st.readySock = noSocket
	}
}

// readyMS is for how long init leaves the processors to the latest command, if it lasts: making what stands ready for the next one takes as much as a
// short command does. Of a command that ends before, it begins with that end.
const readyMS = 20

// begins notes, in init, that the command of st.request begins, with this warden.
//
//go:norace
//go:nocheckptr
func begins(warden uintptr) {
	if st.latest == 0 || !st.readyWanted { // else it counts from an earlier one that goes on: commands may overlap for ever
		st.readyIn = [2]int64{0, readyMS * 1e6}
	}
	st.latest, st.readyWanted = warden, st.request.Last == 0
}

const noSocket = ^uintptr(0)

// hearReady takes what the warden says that stands ready: that it has taken a command, whose control socket init notes, as it does for a warden
// that it forks for a command.
//
//go:norace
//go:nocheckptr
func hearReady() {
	for st.ready != 0 && st.readySock != noSocket {
		n, count, errno := receiveRequest(st.readySock)
		switch {
		case errno == uintptr(syscall.EAGAIN):
			return
		case errno == uintptr(syscall.EINTR):
		case errno != 0 || n == 0 || count == 0:
			closeReady() // it has ended: reapWardens hears of it
		default:
			st.commands[freePlace()&(wire.MaxCommands-1)] = command{warden: st.ready, control: uintptr(st.passed.fds[0])}
			begins(st.ready)
			forgetReady()
		}
	}
}

// readyMain is the whole life of a warden that stands ready.
//
//go:norace
//go:nocheckptr
func readyMain() {
	becomeWarden()
	st.ready, st.readySock = 0, raised(st.readySock)
	sys.Call(sys.SYS_CLOSE_RANGE, 0, internals-1, 0, 0, 0, 0)
	st.signals = raised(uintptr(childSignals(0)))
	prepareSupervisor()
	touch()
	st.standing, st.released, st.phase = standsYet, 0, phaseAhead
	st.toolPID = startBeside(besideTool, 0)
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
	st.phase, st.warmth = phaseLate, wire.Warm
	sys.Call(syscall.SYS_CLOSE, st.entrance, 0, 0, 0, 0, 0) // a system call orders what was written for the tool before the next word (arm64)
	st.released = 1
	sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.released), futexWake, 1, 0, 0, 0)
	leaveReady()
	// The harness hears both at once, of the warden and that the tool was executed, unless that takes long.
	shortly := [2]int64{0, 5e6} // struct timespec
	sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.standing), futexWait, standsReady, sys.Addr(&shortly), 0, 0)
	tellWarden()
	awaitTool(standsReady)
	superviseTool()
}

// touch writes to the pages that a command will, so that this process has its own before the command comes. A copy that is made while the
// tool's process shares the memory would interrupt that one's processor (flush_tlb_mm_range).
//
//go:norace
//go:nocheckptr
func touch() {
	for at := uintptr(0); at < unsafe.Sizeof(st.short); at += 2048 {
		st.short[at] = 0
	}
	st.request, st.passed = wire.Request{}, cmsgMany{}
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
		if _, errno := sys.Call(syscall.SYS_FUTEX, sys.Addr(&st.standing), futexWait, uintptr(past), sys.Addr(&second), 0, 0); errno == uintptr(syscall.ETIMEDOUT) && (toolDied() || past == standsYet && toolChanged()) {
			return false // one that was stopped on its way would hold up the command that waits for it
		}
	}
	return st.standing == standsReady
}

// awaitRequest sleeps until a command comes, takes it, and returns with how many descriptors.
//
//go:norace
//go:nocheckptr
func awaitRequest() uintptr {
	const (
		request = iota
		child
		first
	)
	st.poll = [...]sys.PollFD{request: {FD: int32(st.entrance), Events: sys.POLLIN}, child: {FD: int32(st.signals), Events: sys.POLLIN}, first: {FD: int32(st.readySock)}, 3: {FD: -1}, 4: {FD: -1}, 5: {FD: -1}}
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), 0, 0, 0, 0); errno == uintptr(syscall.EINVAL) {
			exitInit()
		}
		if st.poll[first].Revents != 0 {
			exitInit() // init is gone
		}
		if st.poll[request].Revents != 0 {
			if count := takeNext(); count > 0 {
				return count
			}
		} else if st.poll[child].Revents != 0 {
			sys.Call(syscall.SYS_READ, st.signals, sys.Addr(&st.siginfo), unsafe.Sizeof(st.siginfo), 0, 0, 0)
			if toolChanged() { // and no other process has sent SIGCHLD
				exitInit() // init kills what is left of it
			}
		}
	}
}

// takeNext takes a command, and hands init its control socket: from then on init tells the command's harness of its end, and of the
// warden's. 0: there was none.
//
//go:norace
//go:nocheckptr
func takeNext() uintptr {
	n, count, errno := receiveRequest(st.entrance)
	if errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) {
		return 0
	}
	whole := st.msghdr.flags&msgCtrunc == 0 && count >= wire.PassedFirst
	if errno != 0 || n < leastRequest || count < 2 {
		exitInit()
	}
	switch _, errno := sendTo(st.readySock, sys.Addr(&st.request), leastRequest, st.passed.fds[1], 0); errno {
	case 0:
	case uintptr(syscall.ETOOMANYREFS):
		refuseCommand(errno)
		tell(uintptr(st.passed.fds[1]), wire.Message{Kind: wire.MsgGone})
		exitInit()
	default: // init is gone
		exitInit()
	}
	if !whole {
		refuseCommand(uintptr(syscall.EMFILE)) // see takeRequest
		exitInit()
	}
	return count
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
	sys.Call(syscall.SYS_CLOSE, st.entrance, 0, 0, 0, 0, 0)
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
