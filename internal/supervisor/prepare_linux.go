package supervisor

import (
	"syscall"
	"unsafe"
)

// Prepare opens what serving needs. It is called once, in the process that will serve, with a descriptor of
// the root of a procfs that shows the supervisor's own pid namespace. It returns 0 or a negative errno.
//
//go:norace
func Prepare(s *State, procRoot, listener int) int {
	s.procRoot, s.listener = procRoot, listener
	s.literal("self/fd")
	if s.fdDir = openat(procRoot, &s.num[0], oPath|syscall.O_DIRECTORY, 0); s.fdDir < 0 {
		return s.fdDir
	}
	s.literal("/")
	if s.rootDir = openat(atFDCWD, &s.num[0], oPath|syscall.O_DIRECTORY, 0); s.rootDir < 0 {
		return s.rootDir
	}
	s.literal("self")
	n := sys(syscall.SYS_READLINKAT, uintptr(procRoot), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.small[0])), 16, 0)
	if n < 0 {
		return n
	}
	for i := 0; i < n && i < 16; i++ {
		s.self = s.self*10 + uint(s.small[i&15]-'0')
	}
	if s.place == 0 {
		s.place = s.self
	}
	s.literal("self/ns/mnt")
	if n = s.nsName(procRoot); n < 0 {
		return n
	}
	for i := 0; i < n; i++ {
		s.mountNS[i&63] = s.small[i&511]
	}
	s.ownName()
	if n = s.findRoots(); n < 0 {
		return n
	}
	// Wake the tool on this very processor: since Linux 6.6, and only a matter of speed.
	sys(syscall.SYS_IOCTL, uintptr(listener), ioctlFlags, syncWake, 0, 0)
	return 0
}
