package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// commandMain is the whole life of a stage whose command is one of a session: the process that the harness has for it. It
// hands all that makes up the command to the session's init, passes signals on to the warden, and ends as the tool ends.
//
//go:norace
//go:nocheckptr
func commandMain() {
	own, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	if group, _ := sys.Call(syscall.SYS_GETPGID, 0, 0, 0, 0, 0, 0); group == own {
		st.request.Leads, st.request.Terminal = 1, leaveTerminal(own)
	}
	prepare()
	if errno := handOver(); errno != 0 {
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepClone, errno, wire.InStage
		fail()
	}
	takeName()
	closeStageFDs()
	if relay := monitorWarden(); int(relay) > 0 {
		sys.Call(syscall.SYS_KILL, relay, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		sys.Call(syscall.SYS_WAIT4, relay, 0, sys.WALL, 0, 0, 0)
	}
	sys.Call(syscall.SYS_CLOSE, st.control, 0, 0, 0, 0, 0)
	endAsTool()
}

// handOver sends the command to the session's init.
//
//go:norace
//go:nocheckptr
func handOver() uintptr {
	r := &st.request
	umask, _ := sys.Call(syscall.SYS_UMASK, 0, 0, 0, 0, 0, 0) // this process makes no files
	r.Kind, r.Umask, r.Mask, r.CwdErrno = wire.RequestCommand, uint32(umask), st.oldMask, uint32(st.cwdError)
	if st.hdr.Flags&wire.FlagLast != 0 {
		r.Last = 1
	}
	extra := min(uintptr(st.hdr.Extra), wire.MaxPassed-wire.PassedFirst)
	st.passed = cmsgMany{len: 16 + 4*(wire.PassedFirst+extra), level: syscall.SOL_SOCKET, typ: sys.SCM_RIGHTS}
	st.passed.fds[0], st.passed.fds[1], st.passed.fds[2] = st.hdr.SelfFD, int32(st.control), int32(st.initSock)
	for i := range extra {
		st.passed.fds[(wire.PassedFirst+i)&255] = int32(i)
	}
	socket := uintptr(st.reg[(wire.RegGiven+st.hdr.Session-1)&(wire.MaxRegisters-1)])
	st.iovec[0] = [2]uintptr{sys.Addr(r), unsafe.Offsetof(r.Cwd) + st.cwdBytes}
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: 1, control: sys.Addr(&st.passed), controllen: (st.passed.len + 7) &^ 7}
	for {
		_, errno := sys.Call(syscall.SYS_SENDMSG, socket, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL, 0, 0, 0)
		if errno == uintptr(syscall.ETOOMANYREFS) {
			_, errno = sendRaised(socket, 0)
		}
		if errno != uintptr(syscall.EINTR) {
			sys.Call(syscall.SYS_CLOSE, socket, 0, 0, 0, 0, 0)
			sys.Call(syscall.SYS_CLOSE, uintptr(st.hdr.SelfFD), 0, 0, 0, 0, 0)
			return errno
		}
	}
}

// monitorWarden waits until the warden has told the tool's end, or has ended itself. At the harness's death or the command's
// deadline it returns: the end of its socket is the command's. A command that lasts has a relay, whose number is returned.
//
//go:norace
//go:nocheckptr
func monitorWarden() (relay uintptr) {
	const (
		harness = iota
		socket
		timer
	)
	p := pollNothing()
	if p[harness].FD = watchHarness(); p[harness].FD < 0 {
		return 0
	}
	limit := [2]int64{0, relayMS * 1e6}
	p[socket].FD, p[timer].FD = int32(st.stageSock), startTimer()
	for st.status.Kind == 0 {
		n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(p), uintptr(len(p)), limitWhile(relay == 0, &limit), 0, 0, 0)
		if errno != 0 {
			continue // EINTR: a signal was forwarded
		}
		if n == 0 {
			if relay, errno = cloneHelper(0); errno != 0 {
				relay = ^uintptr(0)
			}
		}
		if p[polledSignals].Revents != 0 {
			admitSignals()
		}
		if p[socket].Revents != 0 && !readStatus() || p[harness].Revents != 0 {
			return relay
		}
		if p[timer].Revents != 0 {
			st.message = wire.Message{Kind: wire.MsgDeadline}
			send(0)
			return relay
		}
	}
	return relay
}

// relayMS is for how long a command has no relay.
const relayMS = 100

// relayMain is the whole life of a relay, a child of a command's stage. The command's processes are not below that stage, and a harness that signals the
// children of the process that it has started would find none: what the relay is sent the warden sends the tool's children.
// It takes some 45 KiB (PSS), and the kernel as much. Only the stage can make a process that is its child, and nothing says whether a harness will look for one.
//
//go:norace
//go:nocheckptr
func relayMain() {
	sys.Call(sys.SYS_CLOSE_RANGE, 0, st.stageSock-1, 0, 0, 0, 0)
	sys.Call(sys.SYS_CLOSE_RANGE, st.stageSock+1, ^uintptr(0)>>32, 0, 0, 0, 0)
	st.sigset = childrensSignals
	for {
		sig, errno := sys.Call(syscall.SYS_RT_SIGTIMEDWAIT, sys.Addr(&st.sigset), 0, 0, 8, 0, 0)
		if errno == 0 {
			st.digits[0] = byte(sig | toChildren)
			sys.Call(syscall.SYS_SENDTO, st.stageSock, sys.Addr(&st.digits), 1, sys.MSG_NOSIGNAL, 0, 0)
		}
	}
}

// leaveTerminal lets go of the terminal that the stage controls, if it leads a session, so that the tool can have it, and
// returns 1 + its descriptor; 0: there is none.
//
//go:norace
//go:nocheckptr
func leaveTerminal(own uintptr) uint32 {
	if sid, _ := sys.Call(syscall.SYS_GETSID, 0, 0, 0, 0, 0, 0); sid != own {
		return 0
	}
	for fd := range min(uintptr(st.hdr.Extra), wire.MaxPassed) {
		sid := int32(0)
		if _, errno := sys.Call(syscall.SYS_IOCTL, fd, tiocGSID, sys.Addr(&sid), 0, 0, 0); errno != 0 || uintptr(sid) != own {
			continue
		}
		// Its foreground group, which is the stage's, is sent SIGHUP and SIGCONT (ioctl_tty(2)).
		st.action = sys.SigAction{Handler: 1} // SIG_IGN
		sys.Call(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGHUP), sys.Addr(&st.action), 0, 8, 0, 0)
		if _, errno := sys.Call(syscall.SYS_IOCTL, fd, syscall.TIOCNOTTY, 0, 0, 0, 0); errno == 0 {
			return uint32(fd) + 1
		}
	}
	return 0
}

// leaveControlling lets go of the terminal that controls the stage, and what it clones, unless it is one of the tool's descriptors: /dev/tty leads nowhere then
// (TIOCNOTTY in ioctl_tty(2)). In the harness's session a tool opens the harness's there, comes to its foreground, and reads what the user types. Where the stage
// cannot open it, the tool cannot either, but for want of a descriptor.
//
//go:norace
//go:nocheckptr
func leaveControlling() {
	own, _ := sys.Call(syscall.SYS_GETSID, 0, 0, 0, 0, 0, 0)
	for fd := range uintptr(st.hdr.Extra) {
		sid := int32(0)
		if _, errno := sys.Call(syscall.SYS_IOCTL, fd, tiocGSID, sys.Addr(&sid), 0, 0, 0); errno == 0 && uintptr(sid) == own {
			return
		}
	}
	fd, errno := sys.Call(syscall.SYS_OPENAT, atCwd, text("/dev/tty\x00"), syscall.O_RDONLY|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0, 0, 0)
	switch syscall.Errno(errno) {
	case 0:
		check(sys.Call(syscall.SYS_IOCTL, fd, syscall.TIOCNOTTY, 0, 0, 0, 0))
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		check(0, errno)
	}
}

const tiocGSID = 0x5429
