package supervisor

import (
	"syscall"
	"unsafe"
)

// What of /dev is the host's where there are no mounts: its terminals, all of one user's in one directory, and its shared memory.
//
// The supervisor opens terminals for the tool, which itself may open none in /dev/pts (package compile). When it opens /dev/ptmx it keeps a
// descriptor of the other end, of O_PATH. A path that leads to a terminal is opened by that descriptor or not at all: the number of a terminal
// that has ended, which is the next one's, leads nowhere then (devpts_pty_kill in fs/devpts/inode.c, devpts_get_priv).
//
// A path below /dev/shm, as shm_open(3) and sem_open(3) make them, is one in a directory of the run's own, which is made for the first of them:
// few tools need it, and a directory costs a start more than a file. Opens for reading alone are not stopped, and find the host's.

const (
	terminalRoom = 64 // terminals that are there at once: the host has 4,096 for everything (pty(7))
	sharedRoom   = 9  // the size of "/dev/shm/"

	terminalFrom, terminalTo = 136, 143 // the major numbers of terminals
	devicePtmx               = 5<<8 | 2

	tiocgptpeer = 0x5441
	magicDevpts = 0x1cd1
)

// KeepTerminal lets the tool open a terminal that it was given, where Rules.Terminals says so. The descriptor, of O_PATH, is the supervisor's from then
// on. It may be called before Begin.
//
//go:norace
func KeepTerminal(s *State, fd int) { s.keepTerminal(fd) }

// keepTerminal takes a descriptor in the place of a terminal's that has ended: 0, or a negative errno.
//
//go:norace
func (s *State) keepTerminal(fd int) int {
	for i := range s.terminals {
		if !s.isThere(s.terminals[i]) {
			if s.terminals[i] > 0 {
				closeFD(s.terminals[i])
			}
			s.terminals[i] = fd
			return 0
		}
	}
	closeFD(fd)
	return -int(syscall.ENOSPC) // as where the host has no more
}

// isThere reports whether a terminal has not ended; s.st is of it.
//
//go:norace
func (s *State) isThere(fd int) bool {
	s.literal("")
	return fd > 0 && lstatat(fd, &s.num[0], &s.st) == 0 && s.st.Nlink != 0
}

// isDevice reports what the character device that resolved path 0 leads to is: the one that makes terminals, and a terminal.
//
//go:norace
func (s *State) isDevice() (makes, terminal bool) {
	sp := &s.resolved[0]
	if s.m.rb(offDevices)&devTerminals == 0 {
		return false, false
	}
	if !s.exists(0) { // one that comes to be in this moment is another's
		r := sys(syscall.SYS_FSTATFS, uintptr(sp.dir), uintptr(unsafe.Pointer(&s.w.fsBuf[0])), 0, 0, 0)
		return false, r < 0 || s.w.fsBuf[0] == magicDevpts
	}
	if sp.st.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return false, false
	}
	major := sp.st.Rdev >> 8 & 0xfff
	return sp.st.Rdev == devicePtmx, major >= terminalFrom && major <= terminalTo
}

// keepOther keeps the other end of the terminal that was made: 0, or a negative errno.
//
//go:norace
func (s *State) keepOther(fd int) int {
	other := sys(syscall.SYS_IOCTL, uintptr(fd), tiocgptpeer, oPath|syscall.O_CLOEXEC, 0, 0)
	if other < 0 {
		return other
	}
	return s.keepTerminal(other)
}

// openOwnTerminal opens the terminal that resolved path 0 leads to, if it is one of the tool's.
//
//go:norace
func (s *State) openOwnTerminal(flags int) int {
	sp := &s.resolved[0]
	if sp.stat != 0 {
		return -eACCES
	}
	dev, ino := sp.st.Dev, sp.st.Ino
	for i := range s.terminals {
		if fd := s.terminals[i]; s.isThere(fd) && s.st.Dev == dev && s.st.Ino == ino {
			return s.reopen(fd, flags&^(syscall.O_CREAT|syscall.O_NOFOLLOW)|syscall.O_NONBLOCK, 0)
		}
	}
	return -eACCES
}

// openControlling opens the terminal of the tool's with this device number.
//
//go:norace
func (s *State) openControlling(dev uint64, flags int) int {
	for i := range s.terminals {
		if fd := s.terminals[i]; s.isThere(fd) && s.st.Rdev == dev {
			return s.reopen(fd, flags|syscall.O_NONBLOCK, 0)
		}
	}
	return -int(syscall.ENXIO)
}

// sharedMemory takes "/dev/shm/" off path k and returns the run's directory in its place, made if it is not there; -1: the path is another.
//
//go:norace
func (s *State) sharedMemory(k int) int {
	const at, dir = "/dev/shm/", "/shm"
	p := &s.path[k&1]
	if s.m.rb(offDevices)&devShared == 0 || s.m.ownSize == 0 || s.in[k&1].from != fromMemory {
		return -1
	}
	for i := 0; i < sharedRoom; i++ {
		if p[i] != at[i] {
			return -1
		}
	}
	own := true // which can lie there
	for i := uint(0); i < s.m.ownSize; i++ {
		own = own && p[i&(pathRoom-1)] == s.m.own[i&(ownRoom-1)]
	}
	if own {
		return -1
	}
	from := uint(sharedRoom)
	for p[from&(pathRoom-1)] == '/' {
		from++
	}
	if from >= s.plen[k&1] {
		return -1
	}
	if s.m.ownSize+uint(len(dir)) >= ownRoom {
		return -int(syscall.ENAMETOOLONG)
	}
	for i := uint(0); i <= uint(len(dir)); i++ {
		c := byte(0)
		if i < uint(len(dir)) {
			c = dir[i]
		}
		s.m.own[(s.m.ownSize+i)&(ownRoom-1)] = c
	}
	const flags = oPath | syscall.O_DIRECTORY | syscall.O_NOFOLLOW
	fd := openat(atFDCWD, &s.m.own[0], flags, 0)
	if fd == -eNOENT {
		cwd, was := atFDCWD, sys(syscall.SYS_UMASK, 0, 0, 0, 0, 0) // s.umask stays true
		sys(syscall.SYS_MKDIRAT, uintptr(cwd), uintptr(unsafe.Pointer(&s.m.own[0])), 0o700, 0, 0)
		sys(syscall.SYS_UMASK, uintptr(was), 0, 0, 0, 0)
		fd = openat(atFDCWD, &s.m.own[0], flags, 0)
	}
	if fd < 0 {
		return fd
	}
	n := s.plen[k&1] - from
	for i := uint(0); i <= n; i++ {
		p[i&(pathRoom-1)] = p[(from+i)&(pathRoom-1)]
	}
	s.plen[k&1] = n
	return fd
}
