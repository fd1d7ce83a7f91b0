package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// send sends st.message, followed by the first n bytes of the evidence, to the
// harness. A harness that does not listen loses nothing but the message.
//
//go:norace
//go:nocheckptr
func send(n uintptr) {
	st.iovec[0] = [2]uintptr{sys.Addr(&st.message), unsafe.Sizeof(st.message)}
	st.iovec[1] = [2]uintptr{sys.Addr(&st.evidence), n}
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: 2}
	sys.Call(syscall.SYS_SENDMSG, st.control, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL|sys.MSG_DONTWAIT, 0, 0, 0)
}

// sendEvidence is send with all of the evidence and, if fd is one, the descriptor of the table of denials, which it closes.
//
//go:norace
//go:nocheckptr
func sendEvidence(fd int32) {
	if fd < 0 {
		send(st.used)
		return
	}
	st.iovec[0] = [2]uintptr{sys.Addr(&st.message), unsafe.Sizeof(st.message)}
	st.iovec[1] = [2]uintptr{sys.Addr(&st.evidence), st.used}
	if _, errno := sendVector(st.control, 2, fd, sys.MSG_DONTWAIT); errno != 0 {
		send(st.used)
	}
	sys.Call(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
}

// sendHeld is send without evidence, but with a descriptor if fd is one and the kernel takes it: the message counts more.
//
//go:norace
//go:nocheckptr
func sendHeld(fd int64) {
	if fd > 0 {
		if _, errno := sendWith(int32(fd), sys.MSG_DONTWAIT); errno == 0 {
			return
		}
	}
	send(0)
}

// sendInit hands the harness a pidfd of init, and one of the keeper if there is
// one: when both are readable every process of the sandbox is dead. Without them the tool must not start: init waits for the stage's word.
//
//go:norace
//go:nocheckptr
func sendInit() {
	st.message = wire.Message{Kind: wire.MsgInit, Value: int64(st.initPID)}
	_, errno := sendWith(st.pidfd, 0)
	if errno == 0 && st.keeperFD > 0 {
		st.message = wire.Message{Kind: wire.MsgKeeper}
		_, errno = sendWith(st.keeperFD, 0)
	}
	if errno == 0 {
		return
	}
	killInit()
	if errno == uintptr(syscall.ETOOMANYREFS) { // otherwise the harness is gone
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepClone, errno, wire.InStage
		reportFailure()
	}
}

// endTree is killTree, of init and of the stage: the harness is told of a process that does not end.
//
//go:norace
//go:nocheckptr
func endTree(dir, file uintptr) {
	if pid := killTree(dir, file); pid != 0 {
		reportStuck(pid)
	}
}

// reportStuck tells the harness of a process that was killed and does not end.
//
//go:norace
//go:nocheckptr
func reportStuck(pid uintptr) {
	st.message = wire.Message{Kind: wire.MsgStuck, Value: int64(pid)}
	send(0)
}

// addUsed adds to init's record what the tool, and all that init has waited for before it, have used.
//
//go:norace
//go:nocheckptr
func addUsed() {
	if st.hdr.Flags&wire.FlagTell == 0 || st.hdr.Flags&wire.FlagPIDNS != 0 {
		return
	}
	sys.Call(syscall.SYS_GETRUSAGE, rusageChildren, sys.Addr(&st.evidence), 0, 0, 0, 0)
	u := (*syscall.Rusage)(unsafe.Pointer(&st.evidence))
	st.status.Used = wire.Used{User: u.Utime.Sec*1e6 + u.Utime.Usec, System: u.Stime.Sec*1e6 + u.Stime.Usec, MaxRSS: u.Maxrss}
}

const rusageChildren = ^uintptr(0) // RUSAGE_CHILDREN is -1

// reportEnd tells the harness how the tool has ended, and what the processes of the run have used: the
// stage's dead children are init, and what init has waited for. Without a PID namespace killTree has the dead gone without
// being waited for: init has said what was used until the tool's end.
//
//go:norace
//go:nocheckptr
func reportEnd() {
	status := int64(st.status.Status)
	if st.status.Kind == 0 {
		status = int64(syscall.SIGKILL) // as endAsTool ends
	}
	st.message = wire.Message{Kind: wire.MsgEnded, Value: status}
	sys.Call(syscall.SYS_GETRUSAGE, rusageChildren, sys.Addr(&st.evidence), 0, 0, 0, 0)
	if st.hdr.Flags&wire.FlagPIDNS == 0 {
		u, used := (*syscall.Rusage)(unsafe.Pointer(&st.evidence)), &st.status.Used
		u.Utime, u.Stime, u.Maxrss = syscall.Timeval{Usec: used.User}, syscall.Timeval{Usec: used.System}, used.MaxRSS
	}
	send(unsafe.Sizeof(syscall.Rusage{}))
}

// reportLost tells the harness that init or the keeper has ended before the tool.
//
//go:norace
//go:nocheckptr
func reportLost(which int64) {
	st.message = wire.Message{Kind: wire.MsgLost, Value: which, Errno: int32(st.waited)}
	send(0)
}

// tell sends a message without evidence to a command's harness.
//
//go:norace
//go:nocheckptr
func tell(control uintptr, m wire.Message) {
	st.message = m
	sys.Call(syscall.SYS_SENDTO, control, sys.Addr(&st.message), unsafe.Sizeof(st.message), sys.MSG_NOSIGNAL|sys.MSG_DONTWAIT, 0, 0)
}
