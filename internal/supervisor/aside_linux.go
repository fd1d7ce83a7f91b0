package supervisor

import (
	"syscall"
	"unsafe"
)

// What the supervisor has judged stands in a copy that no process but it has had open, and that takes its name by a rename.

// asideHead begins the names of copies before they are in place. DefaultNames protects it, so that no supervisor opens one.
const asideHead = ".holdfast-"

// newAside makes a new file in dir, whose name is in s.aside, and returns its descriptor.
//
//go:norace
func (s *State) newAside(dir int) int {
	r := sys(sysGetrandom, uintptr(unsafe.Pointer(&s.small[0])), 16, 0, 0, 0)
	if r != 16 {
		return -int(syscall.EIO)
	}
	for i := 0; i < len(asideHead); i++ {
		s.aside[i&31] = asideHead[i]
	}
	for i := 0; i < 16; i++ {
		s.aside[(len(asideHead)+i)&31] = 'a' + s.small[i]&15
	}
	s.aside[(len(asideHead)+16)&31] = 0
	return openat(dir, &s.aside[0], syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
}

// endAside gives the copy its mode and closes it; it goes when r, the result so far, is negative.
//
//go:norace
func (s *State) endAside(dir, fd, r int, mode uint32) int {
	if r == 0 {
		r = sys(syscall.SYS_FCHMOD, uintptr(fd), uintptr(mode&0o777), 0, 0, 0)
	}
	closeFD(fd)
	if r < 0 {
		s.dropAside(dir)
	}
	return r
}

// storeAside writes text 0 to a new file in dir.
//
//go:norace
func (s *State) storeAside(dir int, mode uint32) int {
	fd := s.newAside(dir)
	if fd < 0 {
		return fd
	}
	return s.endAside(dir, fd, s.store(fd), mode)
}

//go:norace
func (s *State) dropAside(dir int) {
	sys(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&s.aside[0])), 0, 0, 0)
}

// bringIn gives the copy its name.
//
//go:norace
func (s *State) bringIn(dir int, name *byte) int {
	r := sys(sysRename, uintptr(dir), uintptr(unsafe.Pointer(&s.aside[0])), uintptr(dir), uintptr(unsafe.Pointer(name)), 0)
	if r < 0 {
		s.dropAside(dir)
	}
	return r
}
