package supervisor

import (
	"syscall"
	"unsafe"
)

// TCP servers of the tool's own, under Rules.Connects. There is one loopback network, the host's, and clients of the host's that mean 127.0.0.1
// must not reach the tool's servers. So these are bound to two addresses that are the supervisor's own, of 127.128.0.0/9 and made of its process number, or that of the session's init:
//
//   - the first stands for 127.0.0.1 and for every address (0.0.0.0, and :: of a socket that is not for IPv6 alone),
//   - the second for ::1, and for :: of a socket for IPv6 alone.
//
// A connect(2) that means the loopback network goes to no port but those at which the tool serves. That a socket of the tool's listens at a port is no
// reason to connect there: it can be closed in that moment, and a server of the host's that has every address take its place. So the supervisor keeps a
// socket of its own at each such port, which never listens, and with which no other can be bound there (inet_csk_bind_conflict in
// net/ipv4/inet_connection_sock.c): two that share a port both have SO_REUSEADDR set, and this one has it only while the tool's is bound or begins to
// listen. What slipped in during that time cannot listen: the tool's does, or else the port is given up.

const (
	ipv6Only = 26 // IPV6_V6ONLY
	epollAdd = 1
)

// ownAddress is the supervisor's first or second address.
//
//go:norace
func (s *State) ownAddress(second byte) [4]byte {
	return [4]byte{127, 128 | second<<6 | byte(s.place>>16)&63, byte(s.place >> 8), byte(s.place)}
}

// loopback takes the address in path 1: whether it means the loopback network, where s.to is the address that stands for it.
//
//go:norace
func (s *State) loopback() bool {
	from, to := &s.path[1], &s.to
	to.family, to.six, to.any = from[0], false, false
	at, ok := uint(4), s.mode >= sizeInet4
	if from[1] != 0 || from[0] != syscall.AF_INET && from[0] != syscall.AF_INET6 {
		return false
	}
	if from[0] == syscall.AF_INET6 {
		zero, mapped := true, true
		for i := uint(8); i < 20; i++ {
			zero = zero && from[i] == 0
			mapped = mapped && (i < 18 && from[i] == 0 || i >= 18 && from[i] == 0xff)
		}
		to.six = zero && from[20] == 0 && from[21] == 0 && from[22] == 0 && from[23] <= 1 // :: and ::1
		at, ok = 20, s.mode >= leastInet6 && (mapped || to.six)
	}
	for i := uint(0); i < 4; i++ {
		to.addr[i] = from[at+i]
	}
	to.any = to.addr == [4]byte{}
	to.port[0], to.port[1] = from[2], from[3]
	first, second := s.ownAddress(0), s.ownAddress(1)
	if to.six {
		to.addr = second
	} else if to.any || to.addr == [4]byte{127, 0, 0, 1} {
		to.addr = first
	}
	return ok && (to.addr == first || to.addr == second)
}

// address makes path 0 an address of the IPv4 loopback network, in the family of the call: its size.
//
//go:norace
func (s *State) address(addr [4]byte, port [2]byte) int {
	to := &s.path[0]
	for i := uint(0); i < sizeInet6; i++ {
		to[i] = 0
	}
	at, size := uint(4), sizeInet4
	if s.to.family == syscall.AF_INET6 {
		to[18], to[19] = 0xff, 0xff
		at, size = 20, sizeInet6
	}
	to[0], to[2], to[3] = s.to.family, port[0], port[1]
	for i := uint(0); i < 4; i++ {
		to[at+i] = addr[i]
	}
	return size
}

// setOption sets an option of a socket, of four bytes.
//
//go:norace
func (s *State) setOption(sock int, level, name uintptr, value int32) int {
	s.value = value
	return sys(syscall.SYS_SETSOCKOPT, uintptr(sock), level, name, uintptr(unsafe.Pointer(&s.value)), 4)
}

// bindHere binds a socket to the address in path 0.
//
//go:norace
func (s *State) bindHere(sock, size int) int {
	return sys(syscall.SYS_BIND, uintptr(sock), uintptr(unsafe.Pointer(&s.path[0][0])), uintptr(size), 0, 0)
}

// bothFamilies lets a socket of IPv6 speak IPv4.
//
//go:norace
func (s *State) bothFamilies(sock int) {
	if s.to.family == syscall.AF_INET6 {
		s.setOption(sock, syscall.IPPROTO_IPV6, ipv6Only, 0)
	}
}

// bindPort binds a socket of the tool's, of TCP.
//
//go:norace
func (s *State) bindPort(own *ownSocket) int {
	if !s.loopback() {
		return s.refuse(ReasonAddress)
	}
	if s.to.six && s.to.any && !s.isOnlyV6(own.fd) {
		s.to.addr = s.ownAddress(0)
	}
	held := s.portAt(s.to.addr, s.to.port)
	if held != nil {
		if r := s.share(held); r < 0 {
			return r
		}
	}
	s.bothFamilies(own.fd)
	r := s.setOption(own.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if r == 0 {
		r = s.bindHere(own.fd, s.address(s.to.addr, s.to.port))
	}
	if held != nil {
		s.setOption(held.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
	}
	return r
}

//go:norace
func (s *State) isOnlyV6(sock int) bool {
	s.value, s.size = 0, 4
	sys(syscall.SYS_GETSOCKOPT, uintptr(sock), syscall.IPPROTO_IPV6, ipv6Only, uintptr(unsafe.Pointer(&s.value)), uintptr(unsafe.Pointer(&s.size)))
	return s.value != 0
}

// portAt returns the port that is held, or nil.
//
//go:norace
func (s *State) portAt(addr [4]byte, port [2]byte) *heldPort {
	for i := range s.ports {
		h := &s.ports[i]
		if h.fd >= 0 && h.addr == addr && h.port == port {
			return h
		}
	}
	return nil
}

// share lets one more socket be bound at a port, unless a socket of the tool's is there still. Nothing is connected to it then, until that socket
// listens.
//
//go:norace
func (s *State) share(h *heldPort) int {
	if h.open && s.lives(h) {
		return -int(syscall.EADDRINUSE)
	}
	h.open = false
	return s.setOption(h.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}

// lives reports whether the tool's socket at a port has a descriptor still: its epoll instance lists it (proc_pid_fdinfo(5)).
//
//go:norace
func (s *State) lives(h *heldPort) bool {
	s.number("self/fdinfo/", uint(h.life))
	fd := openat(s.procRoot, &s.num[0], syscall.O_RDONLY, 0)
	if fd < 0 {
		return true
	}
	n := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&s.small[0])), uintptr(len(s.small)), 0, 0)
	closeFD(fd)
	for i := 0; i+3 < n; i++ {
		if s.small[i&511] == 't' && s.small[(i+1)&511] == 'f' && s.small[(i+2)&511] == 'd' {
			return true
		}
	}
	return n < 0
}

// listenPort has a socket of the tool's, of TCP and bound, listen, and holds its port.
//
//go:norace
func (s *State) listenPort(own *ownSocket) int {
	s.size = addressRoom
	if r := sys(syscall.SYS_GETSOCKNAME, uintptr(own.fd), uintptr(unsafe.Pointer(&s.path[1][0])), uintptr(unsafe.Pointer(&s.size)), 0, 0); r < 0 {
		return r
	}
	backlog := s.mode
	if s.mode = int(s.size); !s.loopback() || s.to.port == [2]byte{} {
		return -eINVAL // no port yet: IP_BIND_ADDRESS_NO_PORT
	}
	held, r := s.portAt(s.to.addr, s.to.port), 0
	if held != nil {
		r = s.share(held)
	} else {
		held, r = s.hold()
	}
	if r == 0 {
		r = s.beginListening(own.fd, held, backlog)
	}
	return r
}

// hold binds a socket of the supervisor's beside the tool's.
//
//go:norace
func (s *State) hold() (*heldPort, int) {
	h := &s.ports[s.portTurn%portRoom]
	for i := uint(0); i < portRoom; i++ { // a free place, or that of a server which has ended, the oldest first
		k := &s.ports[(s.portTurn+i)%portRoom]
		if k.fd < 0 || !s.lives(k) {
			h = k
			break
		}
	}
	s.portTurn++
	closeFD(h.fd)
	closeFD(h.life)
	s.to.family = syscall.AF_INET
	*h = heldPort{fd: -1, life: -1, addr: s.to.addr, port: s.to.port}
	fd := sys(syscall.SYS_SOCKET, syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0, 0, 0)
	if fd < 0 {
		return nil, fd
	}
	r := s.setOption(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if r == 0 {
		r = s.bindHere(fd, s.address(h.addr, h.port))
	}
	if r < 0 {
		closeFD(fd)
		return nil, r
	}
	h.fd = fd
	return h, 0
}

// beginListening lets the tool's socket listen, and closes the port to others. A socket that fails to has let another be there first, perhaps.
//
//go:norace
func (s *State) beginListening(sock int, h *heldPort, backlog int) int {
	closeFD(h.life)
	r := 0
	if h.life = sys(syscall.SYS_EPOLL_CREATE1, syscall.EPOLL_CLOEXEC, 0, 0, 0, 0); h.life < 0 {
		r = h.life
	}
	for i := 0; i < 16; i++ {
		s.small[i] = 0 // struct epoll_event: of no event
	}
	if r == 0 {
		r = sys(syscall.SYS_EPOLL_CTL, uintptr(h.life), epollAdd, uintptr(sock), uintptr(unsafe.Pointer(&s.small[0])), 0)
	}
	if r == 0 {
		r = sys(syscall.SYS_LISTEN, uintptr(sock), uintptr(backlog), 0, 0, 0)
	}
	if closed := s.setOption(h.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0); r == 0 {
		r = closed
	}
	if h.open = r == 0; !h.open {
		closeFD(h.fd)
		closeFD(h.life)
		h.fd, h.life = -1, -1
	}
	return r
}

// served returns the port at which the tool serves the address in path 1; nil: at none. ::1 is the first address, too.
//
//go:norace
func (s *State) served() *heldPort {
	if !s.loopback() {
		return nil
	}
	h := s.portAt(s.to.addr, s.to.port)
	if s.to.six && (h == nil || !h.open) {
		h = s.portAt(s.ownAddress(0), s.to.port)
	}
	if h == nil || !h.open {
		return nil
	}
	return h
}

// connectPort connects to a server of the tool's. One that has ended refuses, and nothing else can be there.
//
//go:norace
func (s *State) connectPort(own *ownSocket, h *heldPort) int {
	s.bothFamilies(own.fd)
	return s.connectNow(own.fd, s.address(h.addr, h.port))
}
