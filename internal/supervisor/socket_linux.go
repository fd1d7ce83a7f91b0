package supervisor

import (
	"syscall"
)

// ownSocket is a socket, of TCP, UNIX or rtnetlink(7), that the supervisor has made for the tool, by what the kernel calls it: the inode of sockfs. fd is the
// supervisor's own descriptor of it until it is connected, listens or, of netlink, is bound, and -1 from then on, so that the tool's close(2) ends the connection.
type ownSocket struct {
	fd       int
	dev, ino uint64

	tcp, netlink  bool // or of UNIX
	bound, serves bool // it has an address; and listen(2) was called
}

// socketRoom is how many sockets are known that have not been connected, or were among the last. A tool that makes more before it connects the first
// cannot connect that one any more.
const socketRoom = 64

// isSocket takes the arguments of socket(2), which are numbers: the filter sends those alone that ask for TCP, UNIX or netlink.
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
	protocol := uintptr(syscall.IPPROTO_TCP)
	switch {
	case s.mode == syscall.AF_UNIX && (kind == syscall.SOCK_STREAM || kind == syscall.SOCK_SEQPACKET) && s.dev == 0:
		protocol = 0
	case s.mode == syscall.AF_NETLINK && (kind == syscall.SOCK_RAW || kind == syscall.SOCK_DGRAM) && s.dev == syscall.NETLINK_ROUTE:
		protocol = syscall.NETLINK_ROUTE
	case s.mode != syscall.AF_INET && s.mode != syscall.AF_INET6 || kind != syscall.SOCK_STREAM || s.dev != 0 && s.dev != syscall.IPPROTO_TCP:
		return -eACCES // of a stream that is not TCP, such as MPTCP's, and of netlink to the firewall, audit and the like
	}
	fd := sys(syscall.SYS_SOCKET, uintptr(s.mode), uintptr(kind|flags|syscall.SOCK_CLOEXEC), protocol, 0, 0)
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
	*at = ownSocket{fd: fd, dev: uint64(s.st.Dev), ino: s.st.Ino, tcp: s.mode == syscall.AF_INET || s.mode == syscall.AF_INET6, netlink: s.mode == syscall.AF_NETLINK}
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
	for i := range s.bound {
		s.bound[i].fd = -1
	}
	for i := range s.ports {
		s.ports[i].fd, s.ports[i].life = -1, -1
	}
}

// UNIX sockets between the tool's own processes, under Rules.Connects. The supervisor makes the socket, binds it and listens on it as the
// tool asks, so that it knows which files are sockets of the tool's: no other file can be connected to, whatever leads to it. Abstract names
// are the network namespace's, which here is the host's: each has the supervisor's own name put before it, so that the tool neither
// finds a name of the host's nor takes one.

// boundFile is a file that the supervisor has bound a socket to. The descriptor, of O_PATH, keeps its inode from being another file's.
type boundFile struct {
	fd       int
	dev, ino uint64
}

const (
	boundRoom = 64  // files that are known at once
	unixSize  = 110 // struct sockaddr_un
	unixPath  = 2   // where its path begins
)

// ownName is what stands before the tool's abstract names: that of the mount namespace, and of the supervisor, or the session, in it.
//
//go:norace
func (s *State) ownName() {
	const word = "\x00holdfast/"
	n := uint(0)
	for ; n < uint(len(word)); n++ {
		s.before[n&63] = word[n]
	}
	for i := 0; i < 40 && s.mountNS[i] != 0; i++ {
		s.before[n&63] = s.mountNS[i]
		n++
	}
	for i, size := uint(0), s.number("/", s.place); i < size; i++ {
		s.before[n&63] = s.num[i&63]
		n++
	}
	s.before[n&63] = '/'
	s.beforeSize = n + 1
}

// abstract makes path 0 the abstract address in path 1, with the supervisor's own name before it: its size, or a negative errno. A name that
// has it, as getsockname(2) tells the tool, stays.
//
//go:norace
func (s *State) abstract() int {
	from, to := &s.path[1], &s.path[0]
	size := uint(s.mode)
	same := size >= unixPath+s.beforeSize
	for i := uint(0); i < s.beforeSize; i++ {
		same = same && from[(i+unixPath)&(pathRoom-1)] == s.before[i&63]
		to[(i+unixPath)&(pathRoom-1)] = s.before[i&63]
	}
	to[0], to[1] = syscall.AF_UNIX, 0
	at, n := uint(unixPath+1), unixPath+s.beforeSize // behind the NUL byte of the tool's, and behind the name
	if same {
		at = n
	}
	for ; at < size && n < unixSize; at, n = at+1, n+1 {
		to[n&(pathRoom-1)] = from[at&(pathRoom-1)]
	}
	if at < size {
		return -eINVAL // as of every address that is too long
	}
	return int(n)
}
