package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// startTool starts the tool, reports, and serves it. It is the rest of init's life, or of a warden's.
//
//go:norace
//go:nocheckptr
func startTool() {
	st.toolPID = vfork(st.toolClone | sys.CLONE_VM | sys.CLONE_VFORK | sys.CLONE_FILES | uintptr(syscall.SIGCHLD))
	if st.toolPID == 0 {
		toolMain()
	}
	if int(st.toolPID) < 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepClone, -st.toolPID, wire.InInit
		failInit()
	}
	superviseTool()
}

// superviseTool reports of a tool that has executed, or has died, and serves it.
//
//go:norace
//go:nocheckptr
func superviseTool() {
	if st.hdr.Flags&wire.FlagCommand == 0 {
		makeSupervisor() // while the tool runs; a warden has made its own
	}
	checkExecuted()
	if !beginSupervisor() {
		exitInit() // a tool whose calls no supervisor answers
	}
	serve()
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
		asking
	)
	st.poll = [...]sys.PollFD{
		socket:  {FD: int32(st.initSock), Events: sys.POLLIN},
		child:   {FD: childSignals(forChildren()), Events: sys.POLLIN},
		guarded: {FD: int32(st.listener), Events: sys.POLLIN},
		dialer:  {FD: dialerFD(), Events: sys.POLLIN},
		asking:  {FD: questionsFD(), Events: sys.POLLIN},
		5:       {FD: -1},
	}
	for sig := uintptr(1); st.early != 0 && sig < 64; sig++ {
		if st.early>>sig&1 != 0 {
			giveSignal(sig)
		}
	}
	st.early = 0
	for {
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), supervisorWait(), 0, 0, 0)
		if errno == uintptr(syscall.EINVAL) {
			exitInit() // another process has lowered the limit of descriptors (prlimit(2)): poll fails for ever
		}
		if errno != 0 || n == 0 {
			continue
		}
		if st.poll[guarded].Revents&sys.POLLIN != 0 {
			serveSupervisor()
		} else if st.poll[guarded].Revents != 0 {
			st.poll[guarded].FD = -1 // no process is left under the filter
		}
		if st.poll[dialer].Revents != 0 && !serveDialer() {
			st.poll[dialer].FD = -1
		}
		if st.poll[asking].Revents != 0 && supervisor.TakeAnswer(st.supervisor) < 0 {
			st.poll[asking].FD = -1
		}
		if st.poll[child].Revents != 0 {
			reap()
		}
		if st.poll[socket].Revents != 0 && !passSignal() {
			stageEnded()
		}
	}
}

// stageEnded ends init, or a warden, whose stage has gone first. A warden whose tool has ended before goes on while a process of the command is left.
//
//go:norace
//go:nocheckptr
func stageEnded() {
	if st.toolPID != 0 {
		exitInit()
	}
	sys.Call(syscall.SYS_CLOSE, st.initSock, 0, 0, 0, 0, 0)
	st.poll[0].FD = -1
	reap()
}

// childSignals makes a descriptor that is readable when a child has changed, or one of the signals in more, a mask, has come.
//
//go:norace
//go:nocheckptr
func childSignals(more uint64) int32 {
	set := 1<<(syscall.SIGCHLD-1) | more
	fd, _ := sys.Call(sysSignalfd4, ^uintptr(0), sys.Addr(&set), 8, sys.SFD_CLOEXEC|sys.SFD_NONBLOCK, 0, 0)
	return int32(fd)
}

// reap collects the dead. The tool's death ends the sandbox; its stops, and that it goes on, are
// passed to the stage.
//
//go:norace
//go:nocheckptr
func reap() {
	hear()
	for n := 1; ; n++ {
		pid, errno := sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&st.waited), sys.WNOHANG|sys.WUNTRACED|sys.WCONTINUED|sys.WALL, sys.Addr(&st.evidence), 0, 0)
		if errno != 0 && st.toolPID == 0 {
			if st.poll[0].FD < 0 {
				exitInit() // a warden, to which no process is left
			}
			goBehind()
		}
		if errno != 0 || pid == 0 {
			return
		}
		if n%256 == 0 && st.toolPID != 0 && !passSignal() {
			exitInit() // the stage is gone, and there may be no end of the dead
		}
		if pid != st.toolPID {
			continue
		}
		if st.waited&0xff == 0x7f { // stopped: wait(2)
			takeStop(uintptr(st.waited>>8) & 63)
			tellStop(wire.StatusStopped)
			continue
		}
		if st.waited == 0xffff { // continued
			tellStop(wire.StatusContinued)
			continue
		}
		if st.hdr.Flags&wire.FlagCommand != 0 {
			toolEnded()
			continue
		}
		st.status = wire.StatusRecord{Kind: wire.StatusEnded, Status: st.waited}
		addUsed()
		endInit()
	}
}

// goBehind keeps a warden that has only its end before it from interrupting what it wakes for: its stage has closed its end of the
// socket, and is not dead yet, as its harness waits for. A process of SCHED_BATCH interrupts no other when it wakes (sched(7)). What init makes
// ready after the warden's end comes later, too.
//
//go:norace
//go:nocheckptr
func goBehind() {
	const schedOther, schedBatch = 0, 3
	if st.hdr.Flags&wire.FlagBatch == 0 {
		return
	}
	if policy, _ := sys.Call(syscall.SYS_SCHED_GETSCHEDULER, 0, 0, 0, 0, 0, 0); policy == schedOther {
		priority := int32(0) // struct sched_param
		sys.Call(syscall.SYS_SCHED_SETSCHEDULER, 0, schedBatch, sys.Addr(&priority), 0, 0, 0)
	}
}

// tellStop tells the stage that the tool was stopped, or goes on.
//
//go:norace
//go:nocheckptr
func tellStop(kind uint32) {
	st.status = wire.StatusRecord{Kind: kind, Status: st.waited}
	sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&st.status), unsafe.Sizeof(st.status), sys.MSG_NOSIGNAL, 0, 0)
}

// passSignal takes one signal's number from the stage and gives the signal to
// the tool, unless the tool has had it already.
//
// The stage, init and the tool start in one process group. A signal sent to
// the group (a terminal's Ctrl-C, kill(2) with a negative pid) reaches all
// three; one sent to the stage alone reaches only the stage. Init blocks every
// signal, so that one sent to the group is pending here, and was before the
// stage got it: the kernel signals a group's newest member first
// (__kill_pgrp_info, and attach_pid which adds at the head). That it is in
// the pending set, or that hear has read it, tells the two cases apart.
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
	if sig == known {
		if st.asks--; st.asks > 0 {
			return true // the stage may not have had what alone has by now
		}
		signalChildren(st.alone)
		st.had &^= st.alone
		st.alone = 0
	} else if sig&toChildren != 0 {
		signalChildren(1 << (sig & 63))
	} else if st.hdr.Flags&wire.FlagCommand != 0 {
		passToTool(sig)
	} else {
		giveSignal(sig)
	}
	return true
}

// giveSignal gives the tool a signal that the stage has had, unless the tool has had it already.
//
//go:norace
//go:nocheckptr
func giveSignal(sig uintptr) {
	had := (st.stops|st.had)>>(sig&63)&1 != 0
	st.stops &^= 1 << (sig & 63)
	st.had &^= 1 << (sig & 63)
	st.alone &^= 1 << (sig & 63)
	if sig == uintptr(syscall.SIGCONT) {
		st.stops = 0 // it has taken from the stage what it had not passed on yet
	}
	if !wasPending(sig) && !had {
		if st.hdr.Flags&wire.FlagApart == 0 || st.request.Leads == 0 {
			sys.Call(syscall.SYS_KILL, st.toolPID, sig, 0, 0, 0, 0)
			return
		}
		sys.Call(syscall.SYS_KILL, 0, sig, 0, 0, 0, 0) // init's group, in the place of the one that the stage leads and the tool has left
		wasPending(sig)                                // init is in it
	}
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

// toolEnded tells the command's stage and harness that the tool has ended, with the struct rusage that wait4(2) has left in
// st.evidence. What the tool left goes on. The warden waits for the stage's end, which the harness waits for: the end of the warden itself, whose
// memory is to be freed, would take the processor from it.
//
//go:norace
//go:nocheckptr
func toolEnded() {
	// In this order: by the time that the command's stage ends, its harness can know that it was not ended early.
	st.message = wire.Message{Kind: wire.MsgToolEnded, Value: int64(st.waited)}
	send(unsafe.Sizeof(syscall.Rusage{}))
	st.status = wire.StatusRecord{Kind: wire.StatusEnded, Status: st.waited}
	sys.Call(syscall.SYS_SENDTO, st.initSock, sys.Addr(&st.status), unsafe.Sizeof(st.status), sys.MSG_NOSIGNAL, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.control, 0, 0, 0, 0, 0)
	st.toolPID = 0
}

// passToTool gives a signal that the command's stage has had to the tool, or to its process group: a stage that leads one is
// signalled by it.
//
//go:norace
//go:nocheckptr
func passToTool(sig uintptr) {
	to := st.toolPID
	if st.request.Leads != 0 {
		to = -to
	}
	if int(st.toolPID) > 0 {
		sys.Call(syscall.SYS_KILL, to, sig, 0, 0, 0, 0)
	}
}
