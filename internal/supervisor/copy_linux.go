package supervisor

import (
	"syscall"
	"unsafe"
)

// What the supervisor has judged stands in a copy that no process but it has had open, and that takes its name by a rename.

// copyPrefix begins the names of copies before they are in place. The table of package protected has it, so that no supervisor opens one.
const copyPrefix = ".holdfast-"

// newCopy makes a new file in dir, whose name is in s.copyName, and returns its descriptor.
//
//go:norace
func (s *State) newCopy(dir int) int {
	r := sys(sysGetrandom, uintptr(unsafe.Pointer(&s.small[0])), 16, 0, 0, 0)
	if r != 16 {
		return -int(syscall.EIO)
	}
	for i := 0; i < len(copyPrefix); i++ {
		s.copyName[i&31] = copyPrefix[i]
	}
	for i := 0; i < 16; i++ {
		s.copyName[(len(copyPrefix)+i)&31] = 'a' + s.small[i]&15
	}
	s.copyName[(len(copyPrefix)+16)&31] = 0
	return openat(dir, &s.copyName[0], syscall.O_CREAT|syscall.O_EXCL|syscall.O_RDWR|syscall.O_NOFOLLOW, 0o600)
}

// endCopy gives the copy its mode and closes it; it goes when r, the result so far, is negative.
//
//go:norace
func (s *State) endCopy(dir, fd, r int, mode uint32) int {
	if r == 0 {
		r = sys(syscall.SYS_FCHMOD, uintptr(fd), uintptr(mode&0o777), 0, 0, 0)
	}
	closeFD(fd)
	if r < 0 {
		s.dropCopy(dir)
	}
	return r
}

// modeFor returns what of a mode a file may have that is to stand at the name of resolved path b: what the present file has, or what the owner
// alone writes; all but what lets every user write where there is none.
//
//go:norace
func (s *State) modeFor(b *resolvedPath, mode uint32) uint32 {
	if lstatat(b.dir, &b.name[0], &s.st) < 0 {
		return mode &^ writeOthers
	}
	return mode & (s.st.Mode | 0o644)
}

// storeCopy writes text 0 to a new file in dir.
//
//go:norace
func (s *State) storeCopy(dir int, mode uint32) int {
	fd := s.newCopy(dir)
	if fd < 0 {
		return fd
	}
	return s.endCopy(dir, fd, s.store(fd), mode)
}

//go:norace
func (s *State) dropCopy(dir int) {
	sys(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&s.copyName[0])), 0, 0, 0)
}

// renameCopy gives the copy its name.
//
//go:norace
func (s *State) renameCopy(dir int, name *byte) int {
	r := sys(sysRename, uintptr(dir), uintptr(unsafe.Pointer(&s.copyName[0])), uintptr(dir), uintptr(unsafe.Pointer(name)), 0)
	if r < 0 {
		s.dropCopy(dir)
	}
	return r
}

// renameNow carries out the rename in hand.
//
//go:norace
func (s *State) renameNow() int {
	a, b := &s.resolved[0], &s.resolved[1]
	return sys(sysRename, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), uintptr(s.flags))
}

// standsAlone reports whether the name of resolved path b is that of fd's file, and its only one: another sandbox may have put another
// file in the place of the one that was judged, or given that a second name.
//
//go:norace
func (s *State) standsAlone(fd int, b *resolvedPath) bool {
	s.literal("")
	if lstatat(fd, &s.num[0], &s.st) < 0 || s.st.Nlink != 1 {
		return false
	}
	dev, ino := s.st.Dev, s.st.Ino
	return lstatat(b.dir, &b.name[0], &s.st) == 0 && s.st.Dev == dev && s.st.Ino == ino
}
