package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// pass carries out OpPass: it sends descriptor fd to the harness. It does not
// wait: that a few messages have no room means that the harness reads none, and
// then the tool must not start without what it was promised.
//
//go:norace
//go:nocheckptr
func pass(fd, what uintptr) (uintptr, uintptr) {
	st.message = wire.Message{Kind: wire.MsgPassed, Where: wire.InInit, Step: uint32(what >> 16), Value: int64(what & 0xffff)}
	return sendWith(int32(fd), sys.MSG_DONTWAIT)
}

// sendWith sends st.message with a descriptor.
//
//go:norace
//go:nocheckptr
func sendWith(fd int32, flags uintptr) (uintptr, uintptr) {
	return sendTo(st.control, sys.Addr(&st.message), unsafe.Sizeof(st.message), fd, flags)
}

// sendTo sends n bytes to a socket, with descriptor fd unless that is negative.
//
//go:norace
//go:nocheckptr
func sendTo(socket, what, n uintptr, fd int32, flags uintptr) (uintptr, uintptr) {
	st.iovec[0] = [2]uintptr{what, n}
	return sendVector(socket, 1, fd, flags)
}

// sendVector is sendTo for the first n of st.iovec.
//
//go:norace
//go:nocheckptr
func sendVector(socket, n uintptr, fd int32, flags uintptr) (uintptr, uintptr) {
	st.msghdr = msghdr{iov: sys.Addr(&st.iovec), iovlen: n}
	if fd >= 0 {
		st.rights = cmsgFD{len: 16 + 4, level: syscall.SOL_SOCKET, typ: sys.SCM_RIGHTS, fd: fd}
		st.msghdr.control, st.msghdr.controllen = sys.Addr(&st.rights), unsafe.Sizeof(st.rights)
	}
	r, errno := sys.Call(syscall.SYS_SENDMSG, socket, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL|flags, 0, 0, 0)
	if errno == uintptr(syscall.ETOOMANYREFS) {
		return sendRaised(socket, flags)
	}
	return r, errno
}

// sendRaised sends st.msghdr once more, with the limit on descriptors as high as it may be. The kernel counts the
// descriptors that are under way in messages by user, and refuses one more to a process whose soft limit they exceed (unix(7),
// ETOOMANYREFS): a tool of the same user in another sandbox could fill that with its own limit's worth, and nothing would
// start any more. Its hard limit is below this one, by rlimit.Defaults.
//
//go:norace
//go:nocheckptr
func sendRaised(socket, flags uintptr) (uintptr, uintptr) {
	if errno := raiseFiles(); errno != 0 {
		return 0, errno
	}
	r, errno := sys.Call(syscall.SYS_SENDMSG, socket, sys.Addr(&st.msghdr), sys.MSG_NOSIGNAL|flags, 0, 0, 0)
	restoreFiles()
	return r, errno
}

// raiseFiles raises the soft limit on descriptors to the hard one. A tool inherits the limit unless its policy sets one, so restoreFiles sets it back.
//
//go:norace
//go:nocheckptr
func raiseFiles() (errno uintptr) {
	sys.Call(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, 0, sys.Addr(&st.limits[0]), 0, 0)
	st.limits[1] = [2]uint64{st.limits[0][1], st.limits[0][1]}
	_, errno = sys.Call(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, sys.Addr(&st.limits[1]), 0, 0, 0)
	return errno
}

//go:norace
//go:nocheckptr
func restoreFiles() {
	sys.Call(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, sys.Addr(&st.limits[0]), 0, 0, 0)
}
