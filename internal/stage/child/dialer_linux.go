package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// The harness connects to servers inside with sockets that init makes for it: a
// socket belongs for ever to the network namespace in which it was made. Init
// answers one request each time that it polls, and waits for nothing: an answer
// that has no room is dropped, and a harness that is dead has closed its end.

// dialerFD is what serve polls for requests; -1: there is no Dialer.
//
//go:norace
//go:nocheckptr
func dialerFD() int32 {
	if st.reg[wire.RegDialer] <= 0 {
		return -1
	}
	return int32(st.reg[wire.RegDialer])
}

// serveDialer answers one request; false: there will be no more.
//
//go:norace
//go:nocheckptr
func serveDialer() bool {
	socket := uintptr(st.reg[wire.RegDialer])
	n, errno := sys.Call(syscall.SYS_RECVFROM, socket, sys.Addr(&st.dial), unsafe.Sizeof(st.dial), sys.MSG_DONTWAIT, 0, 0)
	if errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) {
		return true
	}
	if errno != 0 || n != unsafe.Sizeof(st.dial) {
		sys.Call(syscall.SYS_CLOSE, socket, 0, 0, 0, 0, 0)
		return false
	}
	fd := ^uintptr(0)
	errno = uintptr(syscall.EAFNOSUPPORT)
	if st.dial.Family == syscall.AF_INET || st.dial.Family == syscall.AF_INET6 {
		fd, errno = sys.Call(syscall.SYS_SOCKET, uintptr(st.dial.Family), syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0, 0, 0, 0)
	}
	st.dial.Errno = int32(errno)
	sendTo(socket, sys.Addr(&st.dial), unsafe.Sizeof(st.dial), int32(fd), sys.MSG_DONTWAIT)
	if errno == 0 {
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	return true
}
