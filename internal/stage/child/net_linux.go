package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A network namespace takes the kernel longer to make than all others together,
// and nothing that init does before the pivot needs it. So a process beside init
// makes it meanwhile, and leaves a descriptor of it.

// makeNet runs in the process beside init.
//
//go:norace
//go:nocheckptr
func makeNet() uintptr {
	if st.hdr.Flags&wire.FlagNetApart != 0 {
		return makeNetApart()
	}
	_, errno := sys.Call(syscall.SYS_UNSHARE, sys.CLONE_NEWNET, 0, 0, 0, 0, 0)
	if errno == 0 {
		errno = raiseLoopback()
	}
	return errno
}

// makeNetApart is makeNet for root without CAP_NET_ADMIN, which raising lo takes over the user namespace that has the network: a new one. It
// has another owner, since an owner has every capability over what is his (user_namespaces(7)), and the tool is root.
//
//go:norace
//go:nocheckptr
func makeNetApart() uintptr {
	const owner, same = 65534, ^uintptr(0)
	if _, errno := sys.Call(syscall.SYS_SETRESUID, same, owner, same, 0, 0, 0); errno != 0 {
		return errno
	}
	return awaitBeside(startBeside(besideApart, sys.CLONE_NEWUSER|sys.CLONE_NEWNET))
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
	if st.hdr.Flags&wire.FlagNet == 0 {
		return 0
	}
	errno := st.netErrno
	if st.hdr.Flags&wire.FlagNetApart == 0 {
		errno = awaitBeside(st.netPID)
	}
	if errno != 0 {
		return errno
	}
	_, errno = sys.Call(sysSetns, st.netFD, sys.CLONE_NEWNET, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, st.netFD, 0, 0, 0, 0, 0)
	return errno
}

// A witness is a process that stays outside of the Landlock domain that init enters, so that init can try to signal it: in
// a session it is init's domain that keeps signals inside. It shares init's memory and descriptors, and ends when init
// closes the pipe that it reads.

//go:norace
//go:nocheckptr
func startWitness() uintptr {
	_, errno := sys.Call(syscall.SYS_PIPE2, sys.Addr(&st.witnessEnd), syscall.O_CLOEXEC, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	st.witness = startBeside(besideWitness, 0)
	if int(st.witness) < 0 {
		return -st.witness
	}
	return 0
}

//go:norace
//go:nocheckptr
func witness() {
	b := byte(0)
	for {
		n, errno := sys.Call(syscall.SYS_READ, uintptr(st.witnessEnd[0]), sys.Addr(&b), 1, 0, 0, 0)
		if errno != uintptr(syscall.EINTR) || n == 0 {
			return
		}
	}
}

// signalWitness returns what becomes of a signal to the witness, and ends it.
//
//go:norace
//go:nocheckptr
func signalWitness() uintptr {
	_, errno := sys.Call(syscall.SYS_KILL, st.witness, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, uintptr(st.witnessEnd[1]), 0, 0, 0, 0, 0)
	for {
		if _, e := sys.Call(syscall.SYS_WAIT4, st.witness, 0, sys.WALL, 0, 0, 0); e != uintptr(syscall.EINTR) {
			break
		}
	}
	sys.Call(syscall.SYS_CLOSE, uintptr(st.witnessEnd[0]), 0, 0, 0, 0, 0)
	return errno
}
