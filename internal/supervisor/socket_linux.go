package supervisor

import "syscall"

// ownSocket is a socket of TCP that the supervisor has made for the tool, by what the kernel calls it: the inode of sockfs. fd is the
// supervisor's own descriptor of it until it is connected, and -1 from then on, so that the tool's close(2) ends the connection.
type ownSocket struct {
	fd       int
	dev, ino uint64
}

// socketRoom is how many sockets are known that have not been connected, or were among the last. A tool that makes more before it connects the first
// cannot connect that one any more.
const socketRoom = 64

// isSocket takes the arguments of socket(2), which are numbers: the filter sends those alone that ask for TCP.
//
//go:norace
func (s *State) isSocket(domain, kind, protocol uint64) int {
	s.op, s.mode, s.flags, s.dev = opSocket, int(int32(domain)), int(int32(kind)), int(int32(protocol))
	return 0
}

// socket makes a socket for the tool, and keeps a descriptor of it. So connect(2) has the tool's own socket in hand, with the options that
// were set meanwhile and whatever descriptors the tool has of it, and needs no right to take descriptors out of another process
// (pidfd_getfd(2)), which the profiles of container engines refuse without CAP_SYS_PTRACE.
//
//go:norace
func (s *State) socket() int {
	kind, flags := s.flags&^(syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK), s.flags&(syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	if s.mode != syscall.AF_INET && s.mode != syscall.AF_INET6 || kind != syscall.SOCK_STREAM || s.dev != 0 && s.dev != syscall.IPPROTO_TCP {
		return -eACCES // of a stream that is not TCP, such as MPTCP's
	}
	fd := sys(syscall.SYS_SOCKET, uintptr(s.mode), uintptr(kind|flags|syscall.SOCK_CLOEXEC), syscall.IPPROTO_TCP, 0, 0)
	if fd < 0 {
		return fd
	}
	s.literal("")
	if r := lstatat(fd, &s.num[0], &s.st); r < 0 {
		closeFD(fd)
		return r
	}
	given := s.give(s.req.id, sys(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0, 0, 0), flags)
	if given < 0 {
		closeFD(fd)
		return given
	}
	at := &s.sockets[s.socketTurn%socketRoom]
	s.socketTurn++
	closeFD(at.fd)
	at.fd, at.dev, at.ino = fd, uint64(s.st.Dev), s.st.Ino
	return given
}

// ownSocketAt returns which of the supervisor's sockets the tool's descriptor is of, or a negative errno. What stands at that number a moment
// later does not matter: the supervisor acts on its own descriptor.
//
//go:norace
func (s *State) ownSocketAt(fd int) int {
	fd = s.toolFD(fd)
	if fd < 0 {
		return fd
	}
	s.literal("")
	r := lstatat(fd, &s.num[0], &s.st)
	closeFD(fd)
	switch {
	case r < 0:
		return r
	case s.st.Mode&syscall.S_IFMT != syscall.S_IFSOCK:
		return -int(syscall.ENOTSOCK)
	}
	for i := uint(1); i <= socketRoom; i++ { // the newest first: the kernel counts inodes of sockfs in 32 bits
		k := (s.socketTurn - i) % socketRoom
		if s.sockets[k].ino == s.st.Ino && s.sockets[k].dev == uint64(s.st.Dev) {
			if r = s.alive(); r < 0 {
				return -eACCES
			}
			return int(k)
		}
	}
	return s.refuse(ReasonSocket)
}

// forgetSockets says that none is known. It runs before the fork.
//
//go:norace
func (s *State) forgetSockets() {
	for i := range s.sockets {
		s.sockets[i].fd = -1
	}
}
