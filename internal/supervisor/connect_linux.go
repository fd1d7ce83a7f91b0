package supervisor

import (
	"syscall"
	"unsafe"
)

// connect connects the tool's socket for it, to a server of the tool's (ports_linux.go) or an address that the rules name, and to no other. A filter sees where
// a call's address lies, not what it is; here it has been copied once, is compared, and is written anew for the kernel, which
// never reads the tool's memory. What else says where a socket's packets go is an option of the socket (a source route,
// ip(7), IP_OPTIONS; a device, socket(7), SO_BINDTODEVICE), and FilterOf refuses it.
//
// The supervisor must not wait, and a connect to a listener whose queue is full does. A limit on the time it takes
// (SO_SNDTIMEO, socket(7)) is the only way to say so that a second thread cannot take back: the filter keeps that option
// from the tool, while O_NONBLOCK is anybody's who has the descriptor. The first packet is
// sent anew after a second, so a longer wait would gain nothing. A socket that does not block is left to itself then, as the kernel
// leaves it; of one that does the attempt is ended.
//
//go:norace
func (s *State) connect() int {
	if s.path[1][0] == syscall.AF_UNIX && s.path[1][1] == 0 && s.mode > unixPath {
		return s.connectLocal()
	}
	held, size := s.served(), 0
	if held == nil {
		if size = s.destination(); size == -eACCES && s.loopback() {
			return -int(syscall.ECONNREFUSED) // as of a loopback network of the tool's own, for programs that wait for a server
		} else if size < 0 {
			return size
		}
	}
	k := s.ownSocketAt(s.flags)
	if k < 0 {
		return k
	}
	own := &s.sockets[uint(k)%socketRoom]
	if own.fd < 0 {
		return -int(syscall.EISCONN)
	}
	r := 0
	if held != nil {
		r = s.connectPort(own, held)
	} else {
		r = s.connectNow(own.fd, size)
	}
	if r == 0 || r == -int(syscall.EISCONN) {
		closeFD(own.fd)
		own.fd = -1
	}
	return r
}

const (
	sizeInet4     = 16
	sizeInet6     = 28
	leastInet6    = 24 // before Linux had scopes: SIN6_LEN_RFC2133
	connectMS     = 200
	endpointBytes = 6
)

// isConnect copies the address to path 1.
//
//go:norace
func (s *State) isConnect(fd, addr, size uint64) int {
	s.op, s.flags, s.mode = opConnect, int(int32(fd)), int(int32(size))
	if s.mode < 0 || s.mode > addressRoom {
		return -eINVAL
	}
	for i := uint(0); i <= addressRoom; i++ {
		s.path[0][i], s.path[1][i] = 0, 0
	}
	if s.mode < 2 {
		return -eINVAL
	}
	r := s.readMem(unsafe.Pointer(&s.path[1][0]), addr, uint(s.mode))
	if r == 0 {
		s.isLocal(true)
	}
	return r
}

// destination writes the address that was copied anew to path 0, without whatever it said beside address and port, and
// returns its size, or the errno of one that is not allowed.
//
//go:norace
func (s *State) destination() int {
	from, to := &s.path[1], &s.path[0]
	family := int(from[0]) | int(from[1])<<8
	at := uint(4)
	size := sizeInet4
	switch {
	case family == syscall.AF_INET && s.mode >= sizeInet4:
	case family == syscall.AF_INET6 && s.mode >= leastInet6:
		at, size = 20, sizeInet6
		for i := uint(8); i < at; i++ { // ::ffff:a.b.c.d alone
			if i < 18 && from[i] != 0 || i >= 18 && from[i] != 0xff {
				return s.refuse(ReasonAddress)
			}
			to[i] = from[i]
		}
	case family == syscall.AF_INET || family == syscall.AF_INET6:
		return -eINVAL
	default: // AF_UNSPEC too: what has been connected stays so
		return s.refuse(ReasonAddress)
	}
	for i := uint(0); i < 4; i++ {
		to[i], to[(at+i)&(pathRoom-1)] = from[i], from[(at+i)&(pathRoom-1)]
	}
	for n, rec := s.m.r16(offConnect), s.m.connects(); n > 0; n-- {
		same := s.m.rb(rec+4) == from[2] && s.m.rb(rec+5) == from[3]
		for i := uint(0); i < 4; i++ {
			same = same && s.m.rb(rec+i) == from[(at+i)&(pathRoom-1)]
		}
		if same {
			return size
		}
		rec += endpointBytes
	}
	return s.refuse(ReasonAddress)
}

// connectNow connects in the time that it has. A socket that does not block is asked once more: the loopback network answers while the first
// connect(2) lets the socket go (tcp_release_cb, __inet_stream_connect), so that the second one has the outcome.
//
//go:norace
func (s *State) connectNow(sock, size int) int {
	if r := s.sendTimeout(sock, connectMS); r < 0 {
		return r
	}
	r := sys(syscall.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&s.path[0][0])), uintptr(size), 0, 0)
	if r == -int(syscall.EINPROGRESS) {
		if sys(syscall.SYS_FCNTL, uintptr(sock), syscall.F_GETFL, 0, 0, 0)&syscall.O_NONBLOCK == 0 {
			s.small[0], s.small[1] = syscall.AF_UNSPEC, 0
			sys(syscall.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&s.small[0])), sizeInet4, 0, 0)
			r = -int(syscall.ETIMEDOUT)
		} else if again := sys(syscall.SYS_CONNECT, uintptr(sock), uintptr(unsafe.Pointer(&s.path[0][0])), uintptr(size), 0, 0); again != -int(syscall.EALREADY) {
			r = again
		}
	}
	s.sendTimeout(sock, 0)
	return r
}

//go:norace
func (s *State) sendTimeout(sock int, ms uintptr) int {
	s.iov[0] = iovec{0, ms * 1000} // struct timeval
	return sys(syscall.SYS_SETSOCKOPT, uintptr(sock), syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, uintptr(unsafe.Pointer(&s.iov[0])), unsafe.Sizeof(s.iov[0]))
}

// connects returns where the addresses lie that may be connected to: at the end of the rules.
//
//go:norace
func (m *matcher) connects() uint {
	return m.r16(offSize) + m.r16(offSize+2)<<16 - endpointBytes*m.r16(offConnect)
}

// connectLocal connects to a socket of the tool's.
//
//go:norace
func (s *State) connectLocal() int {
	file := -1
	if s.in[0].from != fromNothing {
		if r := s.object(0); r < 0 {
			return r
		}
		if file = s.boundAt(); file < 0 {
			return s.refuse(ReasonAddress)
		}
	}
	k := s.ownSocketAt(s.flags)
	if k < 0 {
		return k
	}
	own := &s.sockets[uint(k)%socketRoom]
	if own.fd < 0 {
		return -int(syscall.EISCONN)
	}
	size := 0
	if file < 0 {
		if size = s.abstract(); size < 0 {
			return size
		}
	} else if size = s.boundAddress(file); size < 0 {
		return size
	}
	r := s.sendTimeout(own.fd, connectMS)
	if r == 0 {
		r = sys(syscall.SYS_CONNECT, uintptr(own.fd), uintptr(unsafe.Pointer(&s.path[0][0])), uintptr(size), 0, 0)
	}
	s.sendTimeout(own.fd, 0)
	if file >= 0 {
		sys(syscall.SYS_FCHDIR, uintptr(s.rootDir), 0, 0, 0, 0)
	}
	if r == -int(syscall.EAGAIN) && sys(syscall.SYS_FCNTL, uintptr(own.fd), syscall.F_GETFL, 0, 0, 0)&syscall.O_NONBLOCK == 0 {
		r = -int(syscall.ETIMEDOUT)
	}
	if r == 0 {
		closeFD(own.fd)
		own.fd = -1
	}
	return r
}

// boundAt returns which of the files that were bound resolved path 0 is; -1: none.
//
//go:norace
func (s *State) boundAt() int {
	s.literal("")
	if lstatat(s.resolved[0].obj, &s.num[0], &s.st) != 0 || s.st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return -1
	}
	for i := range s.bound {
		if s.bound[i].fd >= 0 && s.bound[i].ino == s.st.Ino && s.bound[i].dev == uint64(s.st.Dev) {
			return i
		}
	}
	return -1
}

// boundAddress makes path 0 the address of a file that was bound, by the supervisor's descriptor of it and in its directory of descriptors:
// its size, or a negative errno. The way there cannot be changed, as the tool's can.
//
//go:norace
func (s *State) boundAddress(file int) int {
	to := &s.path[0]
	n := s.number("", uint(s.bound[uint(file)%boundRoom].fd))
	to[0], to[1] = syscall.AF_UNIX, 0
	for i := uint(0); i <= n; i++ {
		to[(i+unixPath)&(pathRoom-1)] = s.num[i&63]
	}
	if r := sys(syscall.SYS_FCHDIR, uintptr(s.fdDir), 0, 0, 0, 0); r < 0 {
		return r
	}
	return int(n) + unixPath + 1
}
