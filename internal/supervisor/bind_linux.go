package supervisor

import (
	"syscall"
	"unsafe"
)

// bind names a socket for the tool. A path makes an entry in the file system like mknod; every other address is
// bound as it is. The tool's own spelling of the path is used, so that getsockname(2) tells the tool what it
// asked for. It begins at the directory that the check began at, which was taken once, and leads to the same place, for
// nothing in the sandbox changes a name but through this supervisor, which does one thing at a time.
//
//go:norace
func (s *State) bind() int {
	path := s.in[0].from != fromNothing
	if path {
		if r := s.bindPath(); r < 0 {
			return r
		}
	}
	sock := s.duplicateFD(s.flags)
	if sock < 0 {
		return sock
	}
	start, r := s.resolved[0].start, 0
	if start >= 0 {
		r = sys(syscall.SYS_FCHDIR, uintptr(start), 0, 0, 0, 0)
	}
	if r == 0 {
		r = sys(syscall.SYS_BIND, uintptr(sock), uintptr(unsafe.Pointer(&s.path[1][0])), uintptr(s.mode), 0, 0)
	}
	closeFD(sock)
	if start >= 0 {
		sys(syscall.SYS_FCHDIR, uintptr(s.rootDir), 0, 0, 0, 0)
	}
	return r
}

// bindPath applies the rules to the path of a socket address.
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
	return s.takeUmask()
}
