package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

var _ = stageMain // stageEntry calls it, in assembly

// stageMain is the whole life of the stage, whose program is in descriptor givenFD.
//
//go:norace
//go:nocheckptr
func stageMain() {
	if why := load(givenFD, int32(givenFD)); why != "" {
		printError(why)
		sys.Call(syscall.SYS_EXIT_GROUP, wire.ExitFailed, 0, 0, 0, 0, 0)
	}
	if st.hdr.Flags&wire.FlagCommand != 0 {
		commandMain()
	}
	if !relocate() {
		printError("the stage's program cannot be mapped")
		sys.Call(syscall.SYS_EXIT_GROUP, wire.ExitFailed, 0, 0, 0, 0, 0)
	}
	prepare()
	own, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	if group, _ := sys.Call(syscall.SYS_GETPGID, 0, 0, 0, 0, 0, 0); group == own {
		st.request.Leads = 1
	}
	if st.hdr.Flags&wire.FlagOwnTTY != 0 {
		leaveControlling()
	}
	if !run(wire.InStage) {
		fail()
	}
	pid, pidfd, errno := cloneInit()
	if errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepClone, errno, wire.InStage
		fail()
	}
	st.initPID, st.pidfd = pid, pidfd
	sendInit()
	st.digits[0] = known
	sys.Call(syscall.SYS_SENDTO, st.stageSock, sys.Addr(&st.digits), 1, sys.MSG_NOSIGNAL, 0, 0)
	closeStageFDs()
	monitor()
	if st.hdr.Flags&wire.FlagPIDNS == 0 {
		endKeeper()
		endTree(atCwd, text("/proc/thread-self/children\x00"))
	}
	if st.hdr.Flags&wire.FlagTell != 0 {
		reportEnd()
	}
	// The harness need not wait for our end to know that nothing more is said.
	sys.Call(syscall.SYS_CLOSE, st.control, 0, 0, 0, 0, 0)
	removeOwn()
	endAsTool()
}

// prepare collects what the stage has to know before it clones: its directory,
// its signal mask; makes sure that its own descriptors do not fall among the
// tool's; and takes over the signals.
//
//go:norace
//go:nocheckptr
func prepare() {
	h := st.hdr
	// When the harness dies the stage has still to end the rest, and may have been stopped. That signal comes, too, when the thread has ended that has started the stage.
	asked := int32(0) // by the caller
	if sys.Call(syscall.SYS_PRCTL, syscall.PR_GET_PDEATHSIG, sys.Addr(&asked), 0, 0, 0, 0); asked == 0 {
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0, 0)
	}
	st.control = uintptr(h.ControlFD)
	if h.PathFD > 0 {
		if _, errno := sys.Call(syscall.SYS_DUP3, uintptr(h.SelfFD)+3, uintptr(h.PathFD), 0, 0, 0, 0); errno != 0 { // the tool has none there
			sys.Call(syscall.SYS_CLOSE, uintptr(h.PathFD), 0, 0, 0, 0, 0)
		}
	}
	for fd := range uintptr(h.Extra) {
		if _, errno := sys.Call(syscall.SYS_FCNTL, fd, sys.F_GETFD, 0, 0, 0, 0); errno != 0 {
			fillGap(fd)
			st.request.Gaps[fd>>6&3] |= 1 << (fd & 63)
		}
	}
	// Close what the harness leaked; keep the program and the socket until exec.
	takeGiven(max(uintptr(h.SelfFD), st.control) + 1)
	if h.Flags&wire.FlagCommand == 0 { // whose stage executes nothing
		sys.Call(syscall.SYS_FCNTL, st.control, syscall.F_SETFD, syscall.FD_CLOEXEC, 0, 0, 0)
		sys.Call(syscall.SYS_CLOSE, uintptr(h.SelfFD), 0, 0, 0, 0, 0)
	}

	cwd := &st.request.Cwd
	st.cwdBytes, st.cwdError = sys.Call(syscall.SYS_GETCWD, sys.Addr(cwd), unsafe.Sizeof(*cwd)-1, 0, 0, 0, 0)
	if st.cwdError != 0 {
		st.cwdBytes = 0
	} else if cwd[0] != '/' { // "(unreachable)": getcwd(3)
		st.cwdError = uintptr(syscall.ENOENT)
	}
	var pair [2]int32
	check(sys.Call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0, sys.Addr(&pair), 0, 0))
	st.stageSock, st.initSock = uintptr(pair[0]), uintptr(pair[1])
	if h.Flags&wire.FlagPIDNS == 0 {
		// Whom a killed init leaves behind becomes the stage's child.
		check(sys.Call(syscall.SYS_PRCTL, sys.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0))
	}

	all := ^uint64(0)
	check(sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&all), sys.Addr(&st.oldMask), 8, 0, 0))
	// A harness may ignore it: init would be told of no child's end (do_notify_parent in kernel/signal.c).
	st.action = sys.SigAction{}
	sys.Call(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), sys.Addr(&st.action), 0, 8, 0, 0)
	if st.threads {
		takeSignals(st.stageSock) // in place of the Go runtime's handlers; every other stage has none until closeStageFDs
	}
	if h.Flags&wire.FlagCommand == 0 {
		takeName()
		volunteer()
	}
}

// volunteer has the kernel, for want of memory, kill the sandbox before the harness (proc_pid_oom_score_adj(5)): what is cloned of the stage inherits the
// value. Where /proc refuses it, the harness's stays.
//
//go:norace
//go:nocheckptr
func volunteer() {
	const more, most = 300, 1000
	fd, errno := sys.Call(syscall.SYS_OPENAT, atCwd, text("/proc/self/oom_score_adj\x00"), syscall.O_RDWR|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return
	}
	n, errno := sys.Call(syscall.SYS_READ, fd, sys.Addr(&st.digits), unsafe.Sizeof(st.digits), 0, 0, 0)
	score := uintptr(0) // also in place of a negative one
	for i := uintptr(0); errno == 0 && i < n && st.digits[i%24] >= '0'; i++ {
		score = score*10 + uintptr(st.digits[i%24]-'0')
	}
	d := decimal(&st.digits, min(score+more, most))
	sys.Call(syscall.SYS_WRITE, fd, sys.Addr(&st.digits)+d, unsafe.Sizeof(st.digits)-d, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
}

// takeName names the thread, and what is cloned of it.
//
//go:norace
//go:nocheckptr
func takeName() {
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_NAME, text(wire.Marker), 0, 0, 0, 0)
}

// fillGap puts a placeholder where the caller's ExtraFiles has a nil entry, so
// that nothing of ours lands there. It closes on exec: the tool sees the gap.
//
//go:norace
//go:nocheckptr
func fillGap(fd uintptr) {
	null, errno := sys.Call(syscall.SYS_OPENAT, atCwd, text("/\x00"), sys.O_PATH|syscall.O_CLOEXEC, 0, 0, 0)
	if errno == 0 && null != fd {
		sys.Call(syscall.SYS_DUP3, null, fd, syscall.O_CLOEXEC, 0, 0, 0)
		sys.Call(syscall.SYS_CLOSE, null, 0, 0, 0, 0, 0)
	}
}

// cloneInit makes the sandbox's first process. It is a fork: init has its own
// memory and its own stack from here on.
//
//go:noinline
//go:norace
//go:nocheckptr
func cloneInit() (uintptr, int32, uintptr) {
	flags := uintptr(st.hdr.InitClone) | sys.CLONE_PIDFD | uintptr(syscall.SIGCHLD)
	top := initStackTop()
	if st.hdr.Flags&wire.FlagAsPID1 != 0 {
		st.toolClone, flags = uintptr(st.hdr.InitClone), sys.CLONE_PIDFD|uintptr(syscall.SIGCHLD)
	}
	if st.hdr.JoinUser|st.hdr.JoinPID != 0 {
		return joinAndClone(flags, top)
	}
	if st.hdr.Flags&wire.FlagPIDNS == 0 {
		return cloneKept(flags, top)
	}
	pid, errno := sys.Call(syscall.SYS_CLONE, flags, 0, sys.Addr(&st.pidfd), 0, 0, 0)
	if pid == 0 && errno == 0 {
		enterInit(top)
	}
	return pid, st.pidfd, errno
}

// closeStageFDs closes the tool's descriptors in the stage: a reader of the tool's
// standard output sees its end when the tool closes it, not when the stage
// ends. Then it lets signals in, or, where the stage has no threads that would take them, waits for the first one: a blocked signal stays pending
// whatever its disposition is (sig_ignored in kernel/signal.c), and most runs end without any, so that their stage saves some sixty system calls.
//
//go:norace
//go:nocheckptr
func closeStageFDs() {
	sys.Call(sys.SYS_CLOSE_RANGE, 0, uintptr(st.hdr.Extra)-1, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.initSock, 0, 0, 0, 0, 0)
	if st.hdr.Flags&wire.FlagSession != 0 {
		closeGivenFDs() // init's alone: by their end the harness sees that of init
	}
	st.poll[polledSignals].FD = -1
	if !st.threads {
		st.sigset = ^uint64(0) &^ (1 << (syscall.SIGCHLD - 1))
		fd, errno := sys.Call(sysSignalfd4, ^uintptr(0), sys.Addr(&st.sigset), 8, sys.SFD_CLOEXEC, 0, 0)
		if errno == 0 {
			st.poll[polledSignals] = sys.PollFD{FD: int32(fd), Events: sys.POLLIN}
			return
		}
		takeSignals(st.stageSock)
	}
	letSignalsIn()
}

// monitor waits until init is gone. When the harness has died or the deadline has passed it kills an init that takes everything with it; another one it asks to
// end, as when the keeper has died: if the stage and the keeper were killed between the end of a killed init and that of what it
// leaves, this would have lost all three. Of an init that is killed, was asked, or has closed its socket, it
// waits for the end for some twenty seconds (endsLate): what holds it up is told to the harness. So is
// the end of an init or a keeper that was killed by a process outside, or of an init by the
// kernel for want of memory, which takes the stage with the keeper.
//
//go:norace
//go:nocheckptr
func monitor() {
	const (
		harness = iota
		socket
		initial
		timer
		keeper
	)
	ending, asked, killed, seconds, limit := false, false, false, 0, [2]int64{1, 0} // which ppoll(2) counts down
	p := pollNothing()
	p[socket].FD, p[initial].FD = int32(st.stageSock), st.pidfd
	if p[harness].FD = watchHarness(); p[harness].FD < 0 {
		ending, asked, killed = true, true, endInitFirst()
	}
	if st.keeperFD > 0 {
		p[keeper].FD = st.keeperFD
	}
	p[timer].FD = startTimer()
	for {
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(p), uintptr(len(p)), limitWhile(ending, &limit), 0, 0, 0)
		if errno != 0 {
			continue // EINTR: a signal was forwarded
		}
		if n == 0 && !endsLate(killed, &seconds, &limit) {
			return
		}
		if n == 0 && asked && !killed {
			killInit()
			killed = true
		}
		if p[polledSignals].Revents != 0 {
			admitSignals()
		}
		if p[socket].Revents != 0 && !readStatus() {
			p[socket].FD, ending = -1, true
		}
		if p[initial].Revents != 0 {
			reapInit()
			if st.status.Kind == 0 && !killed && !asked {
				reportLost(wire.LostInit)
			}
			return
		}
		if p[keeper].Revents != 0 {
			reportLost(wire.LostKeeper)
			askInit()
			p[keeper].FD = -1
			ending, asked = true, true
		}
		if p[timer].Revents != 0 {
			reportDeadline()
		}
		if p[harness].Revents|p[timer].Revents != 0 {
			p[harness].FD, p[keeper].FD, p[timer].FD = -1, -1, -1
			ending, asked, killed = true, true, endInitFirst() || killed
		}
	}
}

// limitWhile is ppoll(2)'s limit while something is so; else there is none.
//
//go:norace
//go:nocheckptr
func limitWhile(so bool, limit *[2]int64) uintptr {
	if !so {
		return 0
	}
	return sys.Addr(limit)
}

// endsLate is called each second in which init has not ended, and kills what is below an init that was killed. It returns false when
// monitor is to wait no longer.
//
//go:norace
//go:nocheckptr
func endsLate(killed bool, seconds *int, limit *[2]int64) bool {
	const endSeconds = 20
	if *seconds++; *seconds == endSeconds {
		reportStuck(st.initPID)
		return false
	}
	if limit[0] = 1; killed {
		killBelow(atCwd, 0)
	}
	return true
}

// watchHarness returns a pidfd of the harness, or -1 when it is dead already.
//
//go:norace
//go:nocheckptr
func watchHarness() int32 {
	want := uintptr(st.hdr.HarnessPID)
	fd, errno := sys.Call(sys.SYS_PIDFD_OPEN, want, 0, 0, 0, 0, 0)
	parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	if errno != 0 || parent != want {
		return -1
	}
	return int32(fd)
}

// readStatus takes one record from init; false: init has closed its end.
//
//go:norace
//go:nocheckptr
func readStatus() bool {
	kind, errno := takeStatus()
	switch kind {
	case wire.StatusStopped:
		stop()
	case wire.StatusAsked:
		admitSignals() // their numbers come before the answer
		st.digits[0] = known
		sys.Call(syscall.SYS_SENDTO, st.stageSock, sys.Addr(&st.digits), 1, sys.MSG_NOSIGNAL, 0, 0)
	}
	return kind != 0 || errno == uintptr(syscall.EAGAIN)
}

// takeStatus takes a record, if there is one, and keeps what is said of the tool's end. Before that comes ECONNRESET, once, where init has closed its
// end and not read a signal's number (unix_release_sock in net/unix/af_unix.c).
//
//go:norace
//go:nocheckptr
func takeStatus() (kind uint32, errno uintptr) {
	var r wire.StatusRecord
	n := uintptr(0)
	for errno = uintptr(syscall.EINTR); errno == uintptr(syscall.EINTR) || errno == uintptr(syscall.ECONNRESET); {
		n, errno = sys.Call(syscall.SYS_RECVFROM, st.stageSock, sys.Addr(&r), unsafe.Sizeof(r), sys.MSG_DONTWAIT, 0, 0)
	}
	if errno != 0 || n != unsafe.Sizeof(r) {
		return 0, errno
	}
	if r.Kind == wire.StatusEnded || r.Kind == wire.StatusFailed {
		st.status = r
	}
	return r.Kind, 0
}

// reapInit takes init's exit status and what it still had to say.
//
//go:norace
//go:nocheckptr
func reapInit() {
	for {
		_, errno := sys.Call(syscall.SYS_WAIT4, st.initPID, sys.Addr(&st.waited), sys.WALL, 0, 0, 0)
		if errno != uintptr(syscall.EINTR) {
			break
		}
	}
	for st.status.Kind == 0 {
		if kind, _ := takeStatus(); kind == 0 {
			return
		}
	}
}

// endAsTool ends the stage as the tool ended: by its exit code, or by its signal.
//
//go:norace
//go:nocheckptr
func endAsTool() {
	code := uintptr(wire.ExitFailed)
	switch status := syscall.WaitStatus(st.status.Status); {
	case st.status.Kind == wire.StatusFailed:
		code = uintptr(st.status.Status)
	case st.status.Kind == 0: // init was killed: by us, by the kernel
		dieBy(uintptr(syscall.SIGKILL))
	case status.Signaled():
		dieBy(uintptr(status.Signal()))
	default:
		code = uintptr(status.ExitStatus())
	}
	sys.Call(syscall.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
}

// dieBy ends the stage by a signal, and by no other that is pending, without dumping core.
//
//go:norace
//go:nocheckptr
func dieBy(sig uintptr) {
	sys.Call(syscall.SYS_PRCTL, sys.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
	st.action = sys.SigAction{}
	sys.Call(syscall.SYS_RT_SIGACTION, sig, sys.Addr(&st.action), 0, 8, 0, 0)
	st.sigset = ^uint64(1 << ((sig - 1) & 63))
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&st.sigset), 0, 8, 0, 0)
	pid, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_KILL, pid, sig, 0, 0, 0, 0)
	sys.Call(syscall.SYS_EXIT_GROUP, 128+sig, 0, 0, 0, 0, 0)
}
