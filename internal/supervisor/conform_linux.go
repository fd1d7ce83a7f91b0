package supervisor

import (
	"syscall"
	"unsafe"
)

// conforms walks the directory and reports, by 0 or a negative errno, whether it holds only what a git directory may: what
// gitLines allow, no link, and a configuration of harmless lines. Too many entries are refused. With replace set the configuration
// becomes a copy that the tool does not have open, and no other user can write any of it. The path in s.m is overwritten.
//
//go:norace
func (s *State) conforms(dir int, replace bool) int {
	c := &s.scan
	s.literal(".")
	fd := openat(dir, &s.num[0], syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if fd < 0 {
		return s.refuse(ReasonComplete)
	}
	c.at, c.left, c.conf, c.closes = 0, scanEntries, false, replace
	s.literal(".")
	if lstatat(fd, &s.num[0], &s.st) == 0 {
		s.closeToOthers(fd, &s.num[0])
	}
	c.fd[0], c.size[0] = fd, 0
	for {
		r := s.scanSome()
		if r > 0 {
			continue
		}
		closeFD(c.fd[c.at&(scanDepth-1)])
		if r < 0 {
			for ; c.at > 0; c.at-- {
				closeFD(c.fd[(c.at-1)&(scanDepth-1)])
			}
			return s.refuse(ReasonComplete)
		}
		if c.at == 0 {
			break
		}
		c.at--
		sys(syscall.SYS_LSEEK, uintptr(c.fd[c.at&(scanDepth-1)]), uintptr(c.next[c.at&(scanDepth-1)]), 0, 0, 0)
	}
	if !c.conf {
		return 0
	}
	return s.ownConfig(dir, replace)
}

// scanSome reads the present directory on: 1 to be called again, 0 at its end, -1 for what does not conform.
//
//go:norace
func (s *State) scanSome() int {
	c := &s.scan
	fd := c.fd[c.at&(scanDepth-1)]
	n := sys(syscall.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&c.dent[0])), dentBytes, 0, 0)
	if n <= 0 {
		return n
	}
	for at := uint(0); at+19 < uint(n); {
		size := uint(c.dent[(at+16)&(dentBytes-1)]) | uint(c.dent[(at+17)&(dentBytes-1)])<<8
		if size < 20 || c.left == 0 {
			return -1
		}
		c.left--
		name := at + 19
		next := int64(0)
		for i := uint(8); i > 0; i-- {
			next = next<<8 | int64(c.dent[(at+7+i)&(dentBytes-1)])
		}
		at += size
		if s.isDots(name) {
			continue
		}
		if s.scanName(name) {
			return -1
		}
		switch s.scanEntry(fd, name) {
		case entryBad:
			return -1
		case entryDir:
			if c.at+1 >= scanDepth {
				return -1
			}
			child := openat(fd, &c.dent[name&(dentBytes-1)], syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
			if child < 0 {
				return -1
			}
			c.next[c.at&(scanDepth-1)] = next
			c.at++
			c.fd[c.at&(scanDepth-1)], c.size[c.at&(scanDepth-1)] = child, s.m.n
			return 1
		}
	}
	return 1
}

//go:norace
func (s *State) isDots(name uint) bool {
	c := &s.scan
	a, b, d := c.dent[name&(dentBytes-1)], c.dent[(name+1)&(dentBytes-1)], c.dent[(name+2)&(dentBytes-1)]
	return a == '.' && (b == 0 || b == '.' && d == 0)
}

// scanName makes s.m.path the path of the entry; true if it is too long.
//
//go:norace
func (s *State) scanName(name uint) bool {
	c := &s.scan
	n := c.size[c.at&(scanDepth-1)]
	if n > 0 {
		s.m.path[n&(longRoom-1)] = '/'
		n++
	}
	for i := uint(0); i < 256 && c.dent[(name+i)&(dentBytes-1)] != 0; i++ {
		s.m.path[n&(longRoom-1)] = c.dent[(name+i)&(dentBytes-1)]
		n++
	}
	s.m.n = n
	return n > 3000
}

const (
	entryFine = iota
	entryDir
	entryBad
)

// scanEntry judges one entry, whose path is in s.m.
//
//go:norace
func (s *State) scanEntry(fd int, name uint) int {
	c := &s.scan
	if lstatat(fd, &c.dent[name&(dentBytes-1)], &s.st) < 0 {
		return entryBad
	}
	s.closeToOthers(fd, &c.dent[name&(dentBytes-1)])
	class := s.m.gitClass(0)
	switch s.st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		if (class == gitDir || class == gitFixed || class == gitData || class == gitTree) && !s.m.begins(0, "worktrees/") {
			return entryDir
		}
	case syscall.S_IFREG:
		switch class {
		case gitData, gitTree, gitProbe:
			return entryFine
		case gitConfig:
			c.conf = s.m.n == 6
			if c.conf {
				return entryFine
			}
		}
	}
	return entryBad
}

// closeToOthers takes from a name in dir, of which s.st tells, what lets every user write it, when the directory is to be a git directory. A
// link is followed nowhere: it does not conform.
//
//go:norace
func (s *State) closeToOthers(dir int, name *byte) {
	kind := s.st.Mode & syscall.S_IFMT
	if !s.scan.closes || s.st.Mode&writeOthers == 0 || kind != syscall.S_IFDIR && kind != syscall.S_IFREG {
		return
	}
	fd := openat(dir, name, oPath|syscall.O_NOFOLLOW, 0)
	if fd < 0 {
		return
	}
	s.literal("")
	if lstatat(fd, &s.num[0], &s.st) == 0 {
		s.number("", uint(fd))
		sys(syscall.SYS_FCHMODAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(s.st.Mode&0o7777&^writeOthers), 0, 0)
	}
	closeFD(fd)
}

// ownConfig checks the configuration in dir, and with replace set puts a copy in its place.
//
//go:norace
func (s *State) ownConfig(dir int, replace bool) int {
	s.literal("config")
	s.text[1].N = 0
	s.setTexts(false, false, -1)
	if lstatat(dir, &s.num[0], &s.st) < 0 {
		return s.refuse(ReasonComplete)
	}
	mode := s.st.Mode
	if r := s.load(0, dir, &s.num[0]); r < 0 {
		return r
	}
	s.text[0].Removing = !replace
	same := s.sameForeign()
	s.text[0].Removing = false
	if !same {
		return s.refuse(ReasonComplete)
	}
	if !replace {
		return 0
	}
	r := s.storeCopy(dir, mode&^writeOthers)
	if r == 0 {
		s.literal("config")
		r = s.renameCopy(dir, &s.num[0])
	}
	return r
}
