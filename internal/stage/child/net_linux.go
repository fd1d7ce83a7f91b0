package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A network namespace takes the kernel longer to make than all others together,
// and nothing that init does before the pivot needs it. So a second process makes
// it meanwhile, on another processor if one is free: it shares init's memory and
// descriptors, leaves a descriptor of the namespace, and ends.

// spawn clones a process that calls netMain on the stack that ends at top.
func spawn(flags, top uintptr) (pid uintptr)

var _ = netMain // spawn calls it, in assembly

var netStack [16 << 10]byte

// startNet begins to make the network namespace.
//
//go:norace
//go:nocheckptr
func startNet() {
	top := (sys.Addr(&netStack) + unsafe.Sizeof(netStack)) &^ 15
	st.netPID = spawn(sys.CLONE_VM|sys.CLONE_FILES|uintptr(syscall.SIGCHLD), top)
}

// netMain is the whole life of the process that makes it. It writes nothing of st
// but what is named for it.
//
//go:norace
//go:nocheckptr
func netMain() {
	_, st.netErrno = sys.Call(syscall.SYS_UNSHARE, sys.CLONE_NEWNET, 0, 0, 0, 0, 0)
	if st.netErrno == 0 {
		st.netErrno = raiseLoopback()
	}
	for {
		sys.Call(syscall.SYS_EXIT, 0, 0, 0, 0, 0, 0)
	}
}

// raiseLoopback sets IFF_UP on lo; the kernel then gives it 127.0.0.1/8 and ::1. By
// the socket that it takes for that it has the namespace's descriptor as well
// (SIOCGSKNS, since Linux 4.9): init may be putting a new /proc in its place just then.
//
//go:norace
//go:nocheckptr
func raiseLoopback() uintptr {
	st.ifreq = ifreq{name: [syscall.IFNAMSIZ]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	fd, errno := sys.Call(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0, 0, 0, 0)
	if errno == 0 {
		_, errno = sys.Call(syscall.SYS_IOCTL, fd, syscall.SIOCSIFFLAGS, sys.Addr(&st.ifreq), 0, 0, 0)
		if errno == 0 {
			st.netFD, errno = sys.Call(syscall.SYS_IOCTL, fd, sys.SIOCGSKNS, 0, 0, 0, 0)
		}
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	return errno
}

// joinNet waits for the namespace and enters it.
//
//go:norace
//go:nocheckptr
func joinNet() uintptr {
	if int(st.netPID) <= 0 || st.hdr.Flags&wire.FlagNet == 0 {
		return -st.netPID // clone's errno
	}
	for {
		_, errno := sys.Call(syscall.SYS_WAIT4, st.netPID, sys.Addr(&st.waited), sys.WALL, 0, 0, 0)
		if errno == 0 {
			break
		}
		if errno != uintptr(syscall.EINTR) {
			return errno
		}
	}
	if st.netErrno != 0 {
		return st.netErrno
	}
	if st.waited != 0 { // killed
		return uintptr(syscall.EINTR)
	}
	_, errno := sys.Call(sysSetns, st.netFD, sys.CLONE_NEWNET, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.netFD, 0, 0, 0, 0, 0)
	return errno
}
