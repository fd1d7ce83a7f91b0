package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A session is an init that starts no tool of its own: it takes commands from the session's socket, and forks a
// warden for each (warden_linux.go). Init waits for nothing but poll(2). What a tool does to a warden, it does to
// a process that init replaces by an end: a warden that is stopped is killed, and whatever processes have lost their warden
// become init's children, of which init kills all that are no wardens. So nothing outlives its command by a trick,
// and the end of a command needs no help of its warden.

// internals is the lowest number of init's own descriptors in a session: those below are the tools' and what comes
// with requests.
const internals = 512

// sessionMain is the rest of init's life in a session.
//
//go:norace
//go:nocheckptr
func sessionMain() {
	if fd := st.reg[wire.RegScratch]; fd > 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		st.reg[wire.RegScratch] = -1
	}
	st.initPID, _ = sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	children, errno := sys.Call(syscall.SYS_OPENAT, uintptr(st.reg[wire.RegProc]), text("thread-self/children\x00"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepPrepare, errno, wire.InInit
		failInit()
	}
	st.childrenFD = raised(children)
	st.ignored = st.hdr.IgnoredSigs
	st.session = raised(uintptr(st.reg[(wire.RegGiven+st.hdr.Session-1)&(wire.MaxRegisters-1)]))
	if st.entrance = noSocket; st.hdr.Flags&wire.FlagReady != 0 {
		st.entrance = raised(uintptr(st.reg[(wire.RegGiven+st.hdr.Session)&(wire.MaxRegisters-1)]))
	}
	if n := st.hdr.Made; n > 0 {
		st.made = raised(uintptr(st.reg[(wire.RegGiven+n-1)&(wire.MaxRegisters-1)]))
	}
	st.initSock = raised(st.initSock)
	turn, errno := sys.Call(sysMemfdCreate, text("holdfast turn\x00"), 1, 0, 0, 0, 0)
	if errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepPrepare, errno, wire.InInit
		failInit()
	}
	st.turn = raised(turn)
	makePair()
	for _, r := range [...]int{wire.RegRoot, wire.RegOldRoot, wire.RegProc, wire.RegDialer} {
		r &= wire.MaxRegisters - 1
		if st.reg[r] > 0 {
			st.reg[r] = int64(raised(uintptr(st.reg[r])))
		}
	}
	st.message = wire.Message{Kind: wire.MsgStarted, Check: st.checks, Value: st.reg[wire.RegKeyring]}
	sendHeld(st.reg[wire.RegMounts])
	if st.reg[wire.RegMounts] > 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(st.reg[wire.RegMounts]), 0, 0, 0, 0, 0)
		st.reg[wire.RegMounts] = -1
	}
	sys.Call(syscall.SYS_CLOSE, st.control, 0, 0, 0, 0, 0)
	serveSession()
}

// makePair makes what the wardens' supervisors share, where the network can be the machine's. A session that has none has commands that meet at no socket.
//
//go:norace
//go:nocheckptr
func makePair() {
	if st.hdr.Flags&wire.FlagPIDNS != 0 {
		return
	}
	if _, errno := sys.Call(syscall.SYS_SOCKETPAIR, syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0, sys.Addr(&st.pair), 0, 0); errno != 0 {
		st.pair = [2]int32{}
		return
	}
	for i := range st.pair {
		st.pair[i&1] = int32(raised(uintptr(st.pair[i&1])))
	}
}

// serveSession takes requests until the session's end.
//
//go:norace
//go:nocheckptr
func serveSession() {
	const (
		stage = iota
		child
		session
		dialer
		ready
	)
	st.poll = [...]sys.PollFD{
		stage:   {FD: int32(st.initSock), Events: sys.POLLIN},
		child:   {FD: int32(raised(uintptr(childSignals(0)))), Events: sys.POLLIN},
		session: {FD: int32(st.session), Events: sys.POLLIN},
		dialer:  {FD: dialerFD(), Events: sys.POLLIN},
		ready:   {FD: -1, Events: sys.POLLIN},
		5:       {FD: -1},
	}
	st.signals = uintptr(st.poll[child].FD)
	st.readyWanted, st.readySock, st.readyIn = true, noSocket, [2]int64{0, sweepMS * 1e6}
	for {
		wait := uintptr(0)
		if st.bereft > 0 {
			st.retry = [2]int64{0, sweepMS * 1e6}
			wait = sys.Addr(&st.retry)
		} else if st.readyWanted && st.paused == 0 {
			wait = sys.Addr(&st.readyIn) // ppoll(2) leaves in it what is left of it
		}
		st.poll[ready] = sys.PollFD{FD: int32(st.entrance), Events: sys.POLLIN}
		if st.ready != 0 { // its warden takes what comes there, and closes this socket then
			st.poll[ready] = sys.PollFD{FD: int32(st.readySock)}
		}
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), wait, 0, 0, 0)
		if errno == uintptr(syscall.EINVAL) {
			exitInit() // the limit of descriptors was lowered: see serve
		}
		if errno != 0 {
			continue
		}
		if n == 0 && st.bereft == 0 {
			makeReady()
		}
		if st.poll[dialer].Revents != 0 && !serveDialer() {
			st.poll[dialer].FD = -1
		}
		if st.poll[child].Revents != 0 || st.bereft > 0 {
			reapWardens()
		}
		if st.poll[ready].Revents != 0 && st.ready != 0 {
			hearReady()
		} else if st.poll[ready].Revents != 0 {
			takeRequest(st.entrance)
		}
		if st.poll[session].Revents != 0 {
			takeRequest(st.session)
		}
		if st.poll[stage].Revents != 0 && !dropSignal() {
			exitInit() // the stage is gone
		}
	}
}

// dropSignal takes a signal that the stage has had: in a session it is for no tool. False: the stage is gone.
//
//go:norace
//go:nocheckptr
func dropSignal() bool {
	n, errno := sys.Call(syscall.SYS_RECVFROM, st.initSock, sys.Addr(&st.digits), 1, sys.MSG_DONTWAIT, 0, 0)
	return errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) || errno == 0 && n == 1
}

// takeRequest takes one message from one of the session's sockets.
//
//go:norace
//go:nocheckptr
func takeRequest(socket uintptr) {
	n, count, errno := receiveRequest(socket)
	if errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) {
		return
	}
	if errno != 0 || n == 0 { // every holder of the other end is gone, the harness among them
		st.status = wire.StatusRecord{Kind: wire.StatusEnded}
		endInit()
	}
	if n >= leastRequest && st.request.Kind == wire.RequestEnd {
		st.status = wire.StatusRecord{Kind: wire.StatusEnded}
		endInit()
	}
	if n >= leastRequest && st.request.Kind >= wire.RequestPause {
		takePause()
	}
	if n >= leastRequest && st.request.Kind == wire.RequestCommand && count >= 2 {
		errno := uintptr(syscall.EMFILE) // the kernel dropped some: the limit of descriptors (unix(7))
		if st.paused != 0 {
			errno = uintptr(syscall.ECANCELED)
		} else if st.msghdr.flags&msgCtrunc == 0 && count >= wire.PassedFirst {
			errno = startWarden(count)
		}
		if errno != 0 {
			refuseCommand(errno)
			tell(uintptr(st.passed.fds[1]), wire.Message{Kind: wire.MsgGone})
		}
	}
	for i := range count {
		if fd := st.passed.fds[i&255]; fd >= 0 {
			sys.Call(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		}
	}
}

// refuseCommand tells the harness of the command whose descriptors have come that it cannot be started.
//
//go:norace
//go:nocheckptr
func refuseCommand(errno uintptr) {
	tell(uintptr(st.passed.fds[1]), wire.Message{Kind: wire.MsgFailed, Step: wire.StepClone, Where: wire.InInit, Errno: int32(errno)})
}

// leastRequest is the size of a request without a directory.
const leastRequest = unsafe.Offsetof(wire.Request{}.Cwd)

// receiveRequest receives a message with its descriptors, in st.request and st.passed.
//
//go:norace
//go:nocheckptr
func receiveRequest(socket uintptr) (n, count, errno uintptr) {
	st.passed.len = 0
	st.iovec[0] = [2]uintptr{sys.Addr(&st.request), unsafe.Sizeof(st.request)}
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: 1, control: sys.Addr(&st.passed), controllen: unsafe.Sizeof(st.passed)}
	n, errno = sys.Call(syscall.SYS_RECVMSG, socket, sys.Addr(&st.msghdr), sys.MSG_DONTWAIT|msgCmsgCloexec, 0, 0, 0)
	if errno == 0 && st.msghdr.controllen >= 16 && st.passed.len >= 16 && st.passed.typ == sys.SCM_RIGHTS {
		count = min((st.passed.len-16)/4, wire.MaxPassed)
	}
	return n, count, errno
}

// startWarden forks the warden of the command whose descriptors have come, and keeps its control socket, which it
// takes out of st.passed.
//
//go:norace
//go:nocheckptr
func startWarden(count uintptr) uintptr {
	free := freePlace()
	if free < 0 {
		return uintptr(syscall.EUSERS)
	}
	pid, errno := sys.Call(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		wardenMain(count)
	}
	st.commands[free&(wire.MaxCommands-1)] = command{warden: pid, control: uintptr(st.passed.fds[1])}
	st.passed.fds[1] = -1
	begins(pid)
	return 0
}

// freePlace returns a place in st.commands; -1: there is none.
//
//go:norace
//go:nocheckptr
func freePlace() int {
	for i := range st.commands {
		if st.commands[i].control == 0 {
			return i
		}
	}
	return -1
}

// reapWardens collects the dead, kills wardens that were stopped, and what has lost its warden.
//
//go:norace
//go:nocheckptr
func reapWardens() {
	sys.Call(syscall.SYS_READ, st.signals, sys.Addr(&st.siginfo), unsafe.Sizeof(st.siginfo), 0, 0, 0)
	for range 4096 {
		pid, errno := sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&st.waited), sys.WNOHANG|sys.WUNTRACED&^st.paused|sys.WALL, 0, 0, 0)
		if errno != 0 || pid == 0 {
			break
		}
		if pid == st.ready {
			hearReady() // it may have taken a command
		}
		i := commandOf(pid)
		switch {
		case i < 0 && pid != st.ready:
		case st.waited&0xff == 0x7f:
			sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		case pid == st.ready:
			forgetReady()
			st.bereft++
		default:
			c := &st.commands[i&(wire.MaxCommands-1)]
			c.warden = 0
			st.bereft++
			if pid == st.latest {
				st.latest = 0
			}
			if st.waited != 0 {
				tell(c.control, wire.Message{Kind: wire.MsgLost, Value: wire.LostWarden, Errno: int32(st.waited)})
			}
		}
	}
	if st.bereft > 0 {
		sweep()
	}
}

// sweep kills the children that are no wardens: each has lost its own. When there are none, no process is left of the
// commands whose wardens have ended: their harness is told, by an end of the socket that init alone still held.
// A child that was killed and does not end holds that up for some twenty seconds at most.
//
//go:norace
//go:nocheckptr
func sweep() {
	n, _ := sys.Call(syscall.SYS_PREAD64, st.childrenFD, sys.Addr(&st.children), unsafe.Sizeof(st.children), 0, 0, 0)
	pid, left, number := uintptr(0), uintptr(0), 0
	for i := uintptr(0); i < n && i < uintptr(len(st.children)); i++ {
		if c := st.children[i]; c >= '0' && c <= '9' {
			pid = pid*10 + uintptr(c-'0')
			continue
		}
		if pid > 1 && pid != st.ready && commandOf(pid) < 0 {
			sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
			if left == 0 && st.rounds%(1000/sweepMS) == 1000/sweepMS-1 { // once a second, of the child that has been left for longest
				killBelow(uintptr(st.reg[wire.RegProc]), pid)
			}
			left = pid
			number++
		}
		pid = 0
	}
	if number > bredNumber && st.rounds%bredRounds == bredRounds-1 {
		freezeBelow(uintptr(st.reg[wire.RegProc]), belowSpared)
		signalBelow(uintptr(st.reg[wire.RegProc]), 0, uintptr(syscall.SIGKILL), belowSpared)
	}
	if st.rounds++; left != 0 && st.rounds < sweepRounds {
		return
	}
	for i := range st.commands {
		c := &st.commands[i]
		if c.control == 0 || c.warden != 0 {
			continue
		}
		if left != 0 {
			tell(c.control, wire.Message{Kind: wire.MsgStuck, Value: int64(left)})
		}
		tell(c.control, wire.Message{Kind: wire.MsgGone})
		sys.Call(syscall.SYS_CLOSE, c.control, 0, 0, 0, 0, 0)
		*c = command{}
	}
	st.bereft, st.rounds = 0, 0
	if st.latest == 0 { // what a command has held is free again, and the next one has yet to come
		makeReady()
	}
}

// raised moves a descriptor out of the way of the tools'. One that cannot be moved ends the session: the limit of
// descriptors is too low for it.
//
//go:norace
//go:nocheckptr
func raised(fd uintptr) uintptr {
	up := raisedCopy(fd)
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	return up
}

// raisedCopy is raised, and leaves the descriptor open.
//
//go:norace
//go:nocheckptr
func raisedCopy(fd uintptr) uintptr {
	up, errno := sys.Call(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, internals, 0, 0, 0)
	if errno == uintptr(syscall.EINVAL) && raiseFiles() == 0 { // the soft limit is below
		up, errno = sys.Call(syscall.SYS_FCNTL, fd, syscall.F_DUPFD_CLOEXEC, internals, 0, 0, 0)
		restoreFiles()
	}
	if errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepPrepare, errno, wire.InInit
		failInit()
	}
	return up
}

const (
	msgCtrunc      = 8
	msgCmsgCloexec = 0x40000000
)
