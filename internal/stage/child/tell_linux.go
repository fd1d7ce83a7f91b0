package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// tell sends st.message, followed by the first n bytes of the evidence, to the
// harness. A harness that does not listen loses nothing but the message.
//
//go:norace
//go:nocheckptr
func tell(n uintptr) {
	st.iovec[0] = [2]uintptr{sys.Addr(&st.message), unsafe.Sizeof(st.message)}
	st.iovec[1] = [2]uintptr{sys.Addr(&st.evidence), n}
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: 2}
	sys.Call(syscall.SYS_SENDMSG, st.control, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL|sys.MSG_DONTWAIT, 0, 0, 0)
}

// tellWith is tell without evidence, but with a descriptor if fd is one.
//
//go:norace
//go:nocheckptr
func tellWith(fd int64) {
	if fd <= 0 {
		tell(0)
		return
	}
	sendWith(int32(fd), sys.MSG_DONTWAIT)
}

// announceInit hands the harness a pidfd of init, and one of the keeper if there is
// one: when both are readable every process of the sandbox is dead.
//
//go:norace
//go:nocheckptr
func announceInit() {
	st.message = wire.Message{Kind: wire.MsgInit, Value: int64(st.initPID)}
	if _, errno := sendWith(st.pidfd, 0); errno != 0 {
		killInit() // the harness is gone
	}
	if st.keeperFD > 0 {
		st.message = wire.Message{Kind: wire.MsgKeeper}
		sendWith(st.keeperFD, 0)
	}
}

// tellStuck tells the harness of a process that was killed and does not end.
//
//go:norace
//go:nocheckptr
func tellStuck(pid uintptr) {
	st.message = wire.Message{Kind: wire.MsgStuck, Value: int64(pid)}
	tell(0)
}

// tellLost tells the harness that init or the keeper has ended before the tool.
//
//go:norace
//go:nocheckptr
func tellLost(which int64) {
	st.message = wire.Message{Kind: wire.MsgLost, Value: which, Errno: int32(st.waited)}
	tell(0)
}

// fail reports what is in st.failed* and ends the stage.
//
//go:norace
//go:nocheckptr
func fail() {
	sayFailed()
	sys.Call(syscall.SYS_EXIT_GROUP, exitCode(), 0, 0, 0, 0, 0)
}

// sayFailed tells the harness, and, when nobody is there to make an error of
// it, the tool's standard error.
//
//go:norace
//go:nocheckptr
func sayFailed() {
	st.message = wire.Message{Kind: wire.MsgFailed, Step: st.failedStep, Where: st.failedWhere, Errno: int32(st.failedErrno)}
	tell(st.used)
	if st.hdr.Flags&wire.FlagQuiet != 0 {
		return
	}
	name := wire.Span{}
	switch {
	case st.failedStep < st.hdr.Steps.Len:
		name = *(*wire.Span)(at(st.hdr.Steps.Off + st.failedStep*uint32(unsafe.Sizeof(name))))
	case st.failedStep == execStep:
		name = wire.Span{Off: st.hdr.Path, Len: length(st.hdr.Path)}
	}
	number := decimal(st.failedErrno)
	const prefix, middle, end = "holdfast: ", ": errno ", "\n"
	st.iovec[0] = [2]uintptr{text(prefix), uintptr(len(prefix))}
	st.iovec[1] = [2]uintptr{st.base + uintptr(name.Off), uintptr(name.Len)}
	st.iovec[2] = [2]uintptr{text(middle), uintptr(len(middle))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 3, 0, 0, 0)
	st.iovec[0] = [2]uintptr{sys.Addr(&st.digits) + number, uintptr(len(st.digits)) - number}
	st.iovec[1] = [2]uintptr{text(end), uintptr(len(end))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 2, 0, 0, 0)
}

// complain writes a sentence to standard error.
//
//go:norace
//go:nocheckptr
func complain(why string) {
	const prefix, end = "holdfast: ", "\n"
	st.iovec[0] = [2]uintptr{text(prefix), uintptr(len(prefix))}
	st.iovec[1] = [2]uintptr{text(why), uintptr(len(why))}
	st.iovec[2] = [2]uintptr{text(end), uintptr(len(end))}
	sys.Call(syscall.SYS_WRITEV, 2, sys.Addr(&st.iovec), 3, 0, 0, 0)
}

//go:norace
//go:nocheckptr
func text(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }

// length returns the length of the null-terminated string at off.
//
//go:norace
//go:nocheckptr
func length(off uint32) uint32 {
	n := uint32(0)
	for *(*byte)(at(off + n)) != 0 {
		n++
	}
	return n
}

// decimal writes n into st.digits and returns the index of its first digit.
//
//go:norace
//go:nocheckptr
func decimal(n uintptr) uintptr {
	i := uintptr(len(st.digits))
	for {
		i--
		st.digits[i%uintptr(len(st.digits))] = byte('0' + n%10)
		if n /= 10; n == 0 {
			return i % uintptr(len(st.digits))
		}
	}
}

// exitCode is the stage's exit code for the failure in st.failed*.
//
//go:norace
//go:nocheckptr
func exitCode() uintptr {
	if st.failedStep != execStep {
		return wire.ExitFailed
	}
	if st.failedErrno == uintptr(syscall.ENOENT) {
		return wire.ExitNotFound
	}
	return wire.ExitNotRunnable
}
