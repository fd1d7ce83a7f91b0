package supervisor

import (
	"syscall"
	"unsafe"
)

// bind names a socket for the tool. A path makes an entry in the file system like mknod; every other address is
// bound as it is. The tool's own spelling of the path is used, so that getsockname(2) tells the tool what it
// asked for. It begins at the directory that the check began at, which was taken once, and leads to the same place, for
// nothing in the sandbox changes a name but through this supervisor, which does one thing at a time. Another sandbox may: so a name that
// can make its directory a git directory is bound alone, in the very directory that was judged.
//
//go:norace
func (s *State) bind() int {
	path := s.in[0].from != fromNothing
	if path {
		if r := s.bindPath(); r < 0 {
			return r
		}
	}
	if s.m.rb(offFlags)&flagConnects != 0 {
		return s.bindOwn()
	}
	sock := s.duplicateFD(s.flags)
	if sock < 0 {
		return sock
	}
	r := s.bindAt(sock)
	if path {
		r = s.boundKey(r)
	}
	s.endLinger(sock)
	closeFD(sock)
	return r
}

// endLinger takes the time from SO_LINGER (socket(7)) of a socket whose last descriptor may be the supervisor's by now: a tool that
// closes its own while the call is made would have the supervisor, and all who wait for its turn, wait for what was not sent.
//
//go:norace
func (s *State) endLinger(sock int) {
	s.size = uint32(unsafe.Sizeof(s.linger))
	r := sys(syscall.SYS_GETSOCKOPT, uintptr(sock), syscall.SOL_SOCKET, syscall.SO_LINGER, uintptr(unsafe.Pointer(&s.linger[0])), uintptr(unsafe.Pointer(&s.size)))
	if r < 0 || s.linger[0] == 0 || s.linger[1] == 0 {
		return
	}
	s.linger = [2]int32{}
	sys(syscall.SYS_SETSOCKOPT, uintptr(sock), syscall.SOL_SOCKET, syscall.SO_LINGER, uintptr(unsafe.Pointer(&s.linger[0])), unsafe.Sizeof(s.linger))
}

// bindAt binds a descriptor of the supervisor's to the address in path 1.
//
//go:norace
func (s *State) bindAt(sock int) int {
	sp, r := &s.resolved[0], 0
	start := sp.start
	if s.in[0].from != fromNothing && sp.dir >= 0 && sp.git.rules && sp.keyOf() != 0 {
		start = sp.dir
		n := uint(0)
		for ; n < 108-1 && sp.name[n] != 0; n++ { // it is a part of what was asked for, which fits
			s.path[1][(unixPath+n)&(pathRoom-1)] = sp.name[n]
		}
		s.path[1][(unixPath+n)&(pathRoom-1)] = 0
		s.mode = int(unixPath + n + 1)
	}
	if start >= 0 {
		r = sys(syscall.SYS_FCHDIR, uintptr(start), 0, 0, 0, 0)
	}
	if r == 0 {
		r = sys(syscall.SYS_BIND, uintptr(sock), uintptr(unsafe.Pointer(&s.path[1][0])), uintptr(s.mode), 0, 0)
	}
	if start >= 0 {
		sys(syscall.SYS_FCHDIR, uintptr(s.rootDir), 0, 0, 0, 0)
	}
	return r
}

// boundKey looks once more at a name that can make its directory a git directory and that was bound with result r. A socket of another
// name is nothing to git.
//
//go:norace
func (s *State) boundKey(r int) int {
	if s.resolved[0].keyOf() == 0 {
		return r
	}
	return s.made(0, r)
}

// bindPath applies the rules to the path of a socket address. git takes a socket named refs or objects for the directory
// (access(2) with X_OK in is_git_directory): none completes a git directory.
//
//go:norace
func (s *State) bindPath() int {
	sp := &s.resolved[0]
	if sp.obj >= 0 {
		return -int(syscall.EADDRINUSE)
	}
	if sp.hit&(hitNames|hitHidden) != 0 || sp.git.inside || s.w.asked {
		return s.refuse(ReasonName)
	}
	if r := s.completes(sp, false); r < 0 {
		return r
	}
	return s.takeUmask()
}

// bindOwn binds a socket that the supervisor has made.
//
//go:norace
func (s *State) bindOwn() int {
	k := s.ownSocketAt(s.flags)
	if k < 0 {
		return k
	}
	own := &s.sockets[uint(k)%socketRoom]
	if own.fd < 0 || own.bound || s.mode <= unixPath {
		return -eINVAL // which has an address; or is to be given one by the kernel
	}
	if own.tcp {
		r := s.bindPort(own)
		own.bound = r == 0
		return r
	}
	if own.netlink {
		return s.bindNetlink(own)
	}
	if s.path[1][0] != syscall.AF_UNIX || s.path[1][1] != 0 {
		return -eINVAL
	}
	r := 0
	if s.in[0].from == fromNothing {
		if r = s.abstract(); r > 0 {
			r = sys(syscall.SYS_BIND, uintptr(own.fd), uintptr(unsafe.Pointer(&s.path[0][0])), uintptr(r), 0, 0)
		}
	} else if r = s.boundKey(s.bindAt(own.fd)); r == 0 {
		s.keepBound()
	}
	own.bound = r == 0
	return r
}

// bindNetlink binds a socket of rtnetlink(7), by which a tool asks for interfaces, addresses and routes, as getifaddrs(3) does. The number by
// which it is known on the host is the kernel's choice: one that the tool chose could be one that a program of the host's is to have. What
// the socket says to other processes, and what it would change, the kernel refuses without CAP_NET_ADMIN (NL_CFG_F_NONROOT_SEND and
// rtnetlink_rcv_msg), of which the tool's own are asked, too (netlink_ns_capable).
//
//go:norace
func (s *State) bindNetlink(own *ownSocket) int {
	const size, number = 12, 4 // struct sockaddr_nl, and nl_pid in it
	at := &s.path[1]
	switch {
	case s.mode < size || at[0] != syscall.AF_NETLINK || at[1] != 0:
		return -eINVAL
	case at[number] != 0 || at[number+1] != 0 || at[number+2] != 0 || at[number+3] != 0:
		return -int(syscall.EADDRINUSE)
	}
	r := sys(syscall.SYS_BIND, uintptr(own.fd), uintptr(unsafe.Pointer(&at[0])), size, 0, 0)
	if r == 0 {
		closeFD(own.fd)
		own.fd, own.bound = -1, true
	}
	return r
}

// keepBound notes the file that a socket was bound to: in the place of one that has been removed, or else of the oldest.
//
//go:norace
func (s *State) keepBound() {
	at := &s.bound[s.boundTurn%boundRoom]
	s.boundTurn++
	for i := range s.bound {
		s.literal("")
		if s.bound[i].fd < 0 || lstatat(s.bound[i].fd, &s.num[0], &s.st) != 0 || s.st.Nlink == 0 {
			at = &s.bound[i]
			break
		}
	}
	closeFD(at.fd)
	sp := &s.resolved[0]
	at.fd = openat(sp.dir, &sp.name[0], oPath|syscall.O_NOFOLLOW, 0)
	s.literal("")
	if at.fd >= 0 && lstatat(at.fd, &s.num[0], &s.st) == 0 {
		at.dev, at.ino = uint64(s.st.Dev), s.st.Ino
	}
}

// listen begins to serve at a socket of the tool's that is bound. That is final, so the supervisor lets go of it then, and the
// tool's close(2) ends it.
//
//go:norace
func (s *State) listen() int {
	k := s.ownSocketAt(s.flags)
	if k < 0 {
		return k
	}
	own := &s.sockets[uint(k)%socketRoom]
	switch {
	case own.serves:
		return 0
	case own.fd < 0:
		return -eINVAL
	case !own.bound:
		return -eACCES // listen(2) would give it a port at every address
	}
	r := 0
	if own.tcp {
		r = s.listenPort(own)
	} else {
		r = sys(syscall.SYS_LISTEN, uintptr(own.fd), uintptr(s.mode), 0, 0, 0)
	}
	if r == 0 {
		closeFD(own.fd)
		own.fd, own.serves = -1, true
	}
	return r
}
