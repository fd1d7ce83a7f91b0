package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

func vfork(flags uintptr) (pid uintptr)

var _ = beInit // enterInit calls it, in assembly

// beInit is the whole life of init, the sandbox's first process. With a pid
// namespace its end is the end of every process inside, and the kernel sees to
// that; without one it is the subreaper that kills them.
//
// Nothing may live in a local variable across vfork: the tool's process uses
// the same stack frame.
//
//go:norace
//go:nocheckptr
func beInit() {
	if st.hdr.Flags&wire.FlagPIDNS != 0 {
		// The stage's death is ours. Its thread is its process's main thread, which
		// lives as long as the process (prctl(2) on the "parent").
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	} else {
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0)
		// It has still to kill the tool, and somebody may have stopped it.
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0, 0)
	}
	sys.Call(syscall.SYS_CLOSE, st.stageSock, 0, 0, 0, 0, 0)
	st.listener = -1
	if st.hdr.Flags&wire.FlagNet != 0 {
		startNet()
	}
	if st.hdr.Flags&wire.FlagAsPID1 == 0 && !run(wire.InInit) {
		giveUp()
	}
	if st.hdr.Flags&wire.FlagProbe != 0 {
		tellProbe()
	}
	st.toolPID = vfork(st.toolClone | sys.CLONE_VM | sys.CLONE_VFORK | sys.CLONE_FILES | uintptr(syscall.SIGCHLD))
	if st.toolPID == 0 {
		becomeTool()
	}
	if int(st.toolPID) < 0 {
		st.failedStep, st.failedErrno, st.failedWhere = cloneStep, -st.toolPID, wire.InInit
		giveUp()
	}
	checkHeld()
	if !beginSupervisor() {
		leave() // a tool whose calls nobody answers
	}
	serve()
}

// giveUp reports the failure in st.failed* to everybody and ends init.
//
//go:norace
//go:nocheckptr
func giveUp() {
	sayFailed()
	st.status = wire.StatusRecord{Kind: wire.StatusFailed, Status: uint32(exitCode())}
	endInit()
}

// endInit gives the stage its record and ends; the sandbox dies with it.
//
//go:norace
//go:nocheckptr
func endInit() {
	sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&st.status), unsafe.Sizeof(st.status), sys.MSG_NOSIGNAL, 0, 0)
	leave()
}

//go:norace
//go:nocheckptr
func leave() {
	if st.hdr.Flags&wire.FlagPIDNS == 0 {
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
func tellProbe() {
	st.message = wire.Message{Kind: wire.MsgProbe, Check: st.checks}
	tell(0)
	leave()
}

// serve runs until the tool has ended: it passes signals on, reaps orphans and
// acts for the supervisor.
//
//go:norace
//go:nocheckptr
func serve() {
	const (
		socket = iota
		child
		guarded
		dialer
	)
	st.poll = [5]sys.PollFD{
		socket:  {FD: int32(st.initSock), Events: sys.POLLIN},
		child:   {FD: childSignals(), Events: sys.POLLIN},
		guarded: {FD: int32(st.listener), Events: sys.POLLIN},
		dialer:  {FD: dialerFD(), Events: sys.POLLIN},
		4:       {FD: -1}, // the stage alone waits for a fifth
	}
	for {
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), supervisorWait(), 0, 0, 0)
		if errno == uintptr(syscall.EINVAL) {
			leave() // somebody has taken the limit of descriptors away: polling for ever would end nothing
		}
		if errno != 0 || n == 0 {
			continue
		}
		if st.poll[guarded].Revents&sys.POLLIN != 0 {
			serveSupervisor()
		} else if st.poll[guarded].Revents != 0 {
			st.poll[guarded].FD = -1 // nobody is left under the filter
		}
		if st.poll[dialer].Revents != 0 && !serveDialer() {
			st.poll[dialer].FD = -1
		}
		if st.poll[child].Revents != 0 {
			reap()
		}
		if st.poll[socket].Revents != 0 && !passSignal() {
			leave() // the stage is gone
		}
	}
}

// childSignals makes a descriptor that is readable when a child has changed.
//
//go:norace
//go:nocheckptr
func childSignals() int32 {
	st.sigset = 1 << (syscall.SIGCHLD - 1)
	fd, _ := sys.Call(sysSignalfd4, ^uintptr(0), sys.Addr(&st.sigset), 8, sys.SFD_CLOEXEC|sys.SFD_NONBLOCK, 0, 0)
	return int32(fd)
}

// reap collects the dead. The tool's death ends the sandbox; its stops are
// passed to the stage.
//
//go:norace
//go:nocheckptr
func reap() {
	sys.Call(syscall.SYS_READ, uintptr(st.poll[1].FD), sys.Addr(&st.siginfo), unsafe.Sizeof(st.siginfo), 0, 0, 0)
	for n := 1; ; n++ {
		pid, errno := sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&st.waited), sys.WNOHANG|sys.WUNTRACED|sys.WALL, 0, 0, 0)
		if errno != 0 || pid == 0 {
			return
		}
		if n%256 == 0 && !passSignal() {
			leave() // the stage is gone, and there may be no end of the dead
		}
		if pid != st.toolPID {
			continue
		}
		if st.waited&0xff == 0x7f { // stopped: wait(2)
			takeStop(uintptr(st.waited>>8) & 63)
			st.status = wire.StatusRecord{Kind: wire.StatusStopped, Status: st.waited}
			sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&st.status), unsafe.Sizeof(st.status), sys.MSG_NOSIGNAL, 0, 0)
			continue
		}
		st.status = wire.StatusRecord{Kind: wire.StatusEnded, Status: st.waited}
		endInit()
	}
}

// passSignal takes one signal's number from the stage and gives the signal to
// the tool, unless the tool has had it already.
//
// The stage, init and the tool start in one process group. A signal sent to
// the group (a terminal's Ctrl-C, kill(2) with a negative pid) reaches all
// three; one sent to the stage alone reaches only the stage. Init blocks every
// signal, so that one sent to the group is pending here, and was before the
// stage got it: the kernel signals a group's newest member first
// (__kill_pgrp_info, and attach_pid which adds at the head). Taking it from
// the pending set tells the two cases apart.
//
//go:norace
//go:nocheckptr
func passSignal() bool {
	n, errno := sys.Call(syscall.SYS_RECVFROM, st.initSock, sys.Addr(&st.digits), 1, sys.MSG_DONTWAIT, 0, 0)
	if errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) {
		return true
	}
	if errno != 0 || n != 1 {
		return false
	}
	sig := uintptr(st.digits[0])
	had := st.stops>>(sig&63)&1 != 0
	st.stops &^= 1 << (sig & 63)
	if sig == uintptr(syscall.SIGCONT) {
		st.stops = 0 // it has taken from the stage what it had not passed on yet
	}
	if !wasPending(sig) && !had {
		sys.Call(syscall.SYS_KILL, st.toolPID, sig, 0, 0, 0, 0)
	}
	return true
}

// wasPending takes a signal from init's pending set, if it is there.
//
//go:norace
//go:nocheckptr
func wasPending(sig uintptr) bool {
	st.sigset = 1 << ((sig - 1) & 63)
	got, _ := sys.Call(syscall.SYS_RT_SIGTIMEDWAIT, sys.Addr(&st.sigset), sys.Addr(&st.siginfo), sys.Addr(&st.zeroTime), 8, 0, 0)
	return got == sig
}

// takeStop notes that the signal which has stopped the tool was sent to the group,
// before anybody can see the stop: a SIGCONT that answers it takes every stop from
// the pending sets (signal(7)), and the stage's number, which may come later, would
// then pass for a signal to the stage alone, and stop the tool once more.
//
//go:norace
//go:nocheckptr
func takeStop(sig uintptr) {
	if sig >= uintptr(syscall.SIGTSTP) && sig <= uintptr(syscall.SIGTTOU) && wasPending(sig) {
		st.stops |= 1 << (sig & 63)
	}
}

// killTree kills what the tool left behind where no pid namespace does it:
// whoever loses its parent becomes init's child (PR_SET_CHILD_SUBREAPER), so
// killing all children until there are none reaches everybody. The stage does
// the same when init is gone. The file that lists the children is given by a
// directory's descriptor and a path.
//
// A child that is the first in the list round after round does not end, though it is
// killed: after some rounds killTree sleeps in between, and after some twenty seconds
// it gives up, tells the harness which child that is, and returns.
//
//go:norace
//go:nocheckptr
func killTree(dir, file uintptr) {
	// From here on the dead are gone at once (sigaction(2), SIGCHLD): they would be
	// listed before the living, who could make them faster than they are reaped.
	st.action = sys.SigAction{Handler: 1} // SIG_IGN
	sys.Call(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), sys.Addr(&st.action), 0, 8, 0, 0)
	const spins, patience = 200, 2200
	last, still := uintptr(0), 0
	for {
		dead, errno := uintptr(1), uintptr(0)
		for dead != 0 && errno == 0 { // those of before
			dead, errno = sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&st.waited), sys.WNOHANG|sys.WALL, 0, 0, 0)
		}
		if errno == uintptr(syscall.ECHILD) {
			return
		}
		fd, errno := sys.Call(syscall.SYS_OPENAT, dir, file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			if int(st.toolPID) > 0 {
				sys.Call(syscall.SYS_KILL, st.toolPID, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
			}
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
			continue
		}
		n, _ := sys.Call(syscall.SYS_READ, fd, sys.Addr(&st.children), unsafe.Sizeof(st.children), 0, 0, 0)
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		first := killListed(n)
		if still++; first != last {
			last, still = first, 0
		}
		switch {
		case still > patience:
			tellStuck(first)
			return
		case still > spins:
			st.retry = [2]int64{0, retryMS * 1e6}
			sys.Call(syscall.SYS_NANOSLEEP, sys.Addr(&st.retry), 0, 0, 0, 0, 0)
		default:
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
		}
	}
}

// killListed kills the processes whose numbers stand in the first n bytes of
// st.children, each followed by a space. A number cut off by the buffer's end
// is left for the next round. It returns the first of them.
//
//go:norace
//go:nocheckptr
func killListed(n uintptr) (first uintptr) {
	pid := uintptr(0)
	for i := uintptr(0); i < n && i < uintptr(len(st.children)); i++ {
		if c := st.children[i]; c >= '0' && c <= '9' {
			pid = pid*10 + uintptr(c-'0')
			continue
		}
		if pid > 1 {
			sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		}
		if first == 0 {
			first = pid
		}
		pid = 0
	}
	return first
}
