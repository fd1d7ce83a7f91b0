package supervisor

import (
	"syscall"
	"unsafe"
)

// Renames that would bend a .git file: see gitway_linux.go.

// climbs reads the path that begins at byte i of text 1: how many directories it goes up, and whether it leads to a name .git then, and
// not to a linked worktree's directory. An absolute path goes up none.
//
//go:norace
func (s *State) climbs(i uint) (ups uint, module bool) {
	if s.textAt(i) == '/' {
		return 0, false
	}
	worktree, names := false, uint(0)
	for s.textAt(i) != 0 {
		at := i
		for c := s.textAt(i); c != 0 && c != '/'; c = s.textAt(i) {
			i++
		}
		size := i - at
		switch {
		case size == 2 && s.textAt(at) == '.' && s.textAt(at+1) == '.':
			ups++
			module, names = false, 0
		case size == 0, size == 1 && s.textAt(at) == '.':
		default:
			names++
			if names == 1 {
				module = size == 4 && s.textAt(at) == '.' && s.textAt(at+1) == 'g' && s.textAt(at+2) == 'i' && s.textAt(at+3) == 't'
			}
			worktree = names == 2 && size == 9 && s.textAt(at) == 'w' || worktree && names == 3
		}
		for s.textAt(i) == '/' {
			i++
		}
	}
	return ups, module && !worktree
}

// keepsWays decides whether the rename in hand bends what a .git file says: 0 or a negative errno.
//
//go:norace
func (s *State) keepsWays() int {
	a, b := &s.resolved[0], &s.resolved[1]
	if !a.git.rules || !b.git.rules {
		return 0
	}
	r := s.keepsWay(0, 1)
	if r == 0 && s.flags&renameExchange != 0 {
		r = s.keepsWay(1, 0)
	}
	return r
}

// keepsWay looks at what goes from the name of resolved path k to that of l. Where nothing can be said for the number of directories it is
// EXDEV, on which mv copies.
//
//go:norace
func (s *State) keepsWay(k, l int) int {
	switch s.typeOf(k) {
	case syscall.S_IFLNK:
		if r := s.judge(l); r < 0 {
			return r
		}
		if s.onWay(l) {
			return s.refuseAt(l, ReasonWay)
		}
		return 0
	case syscall.S_IFDIR:
		if s.bringsLinks(k, l) {
			return s.refuseAt(l, ReasonWay)
		}
		return s.keepsFiles(k, l)
	}
	return 0
}

// bringsLinks reports whether a directory that comes to the name of resolved path l may hold a link where a .git file leads through it: one
// that is no git directory, and has a worktrees or modules.
//
//go:norace
func (s *State) bringsLinks(k, l int) bool {
	a, b := &s.resolved[k&1], &s.resolved[l&1]
	if s.judge(l) < 0 {
		return true
	}
	below := false
	for i := s.m.floor + 1; i < s.m.nc; i++ {
		below = below || s.m.ofLinked(i)
	}
	if !below || b.git.inside {
		fd := openat(a.dir, &a.name[0], oPath|syscall.O_NOFOLLOW|a.withoutSlash()|syscall.O_DIRECTORY, 0)
		if fd < 0 {
			return true
		}
		below = !b.git.inside && (lstatat(fd, s.above(0, "worktrees"), &s.st) != -eNOENT || lstatat(fd, s.above(0, "modules"), &s.st) != -eNOENT) && !shaped(s.keys(fd))
		closeFD(fd)
	}
	return below && s.onWay(l)
}

// keepsFiles decides whether the directory at resolved path k may go to another directory, at l, for the .git files in it. In the same
// directory they say what they said.
//
//go:norace
func (s *State) keepsFiles(k, l int) int {
	a, b := &s.resolved[k&1], &s.resolved[l&1]
	s.literal("")
	if lstatat(a.dir, &s.num[0], &s.st) < 0 {
		return -eACCES
	}
	dev, ino := uint64(s.st.Dev), s.st.Ino
	if lstatat(b.dir, &s.num[0], &s.st) < 0 {
		return -eACCES
	}
	if dev == uint64(s.st.Dev) && ino == s.st.Ino {
		return 0
	}
	if r := s.judge(k); r < 0 {
		return r
	}
	before := s.m.nc - s.m.floor
	if r := s.judge(l); r < 0 {
		return r
	}
	after := s.m.nc - s.m.floor
	fd := openat(a.dir, &a.name[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|a.withoutSlash()|syscall.O_DIRECTORY, 0)
	if fd < 0 {
		return -int(syscall.EXDEV)
	}
	if at := s.readGitFile(fd, s.above(0, ".git")); at != 0 {
		if ups, module := s.climbs(at); at == anyWhere || ups > 0 && (!module || ups > after) {
			closeFD(fd)
			return s.refuseAt(k, ReasonWay)
		}
	}
	if after >= before {
		closeFD(fd)
		return 0
	}
	r := s.bentBelow(fd, after)
	if r == -eACCES {
		return s.refuseAt(k, ReasonWay)
	}
	return r
}

// bentBelow looks for a .git file below the directory fd, which is closed, that goes up out of the root when fd lies so deep in it: 0 or
// a negative errno.
//
//go:norace
func (s *State) bentBelow(fd int, depth uint) int {
	c := &s.scan
	c.at, c.left, c.fd[0] = 0, scanEntries, fd
	for {
		r := s.nextDir()
		if r > 0 {
			at := s.readGitFile(c.fd[c.at&(scanDepth-1)], s.above(0, ".git"))
			if at == 0 {
				continue
			}
			if ups, _ := s.climbs(at); at != anyWhere && ups <= depth+c.at {
				continue
			}
			r = -eACCES
		}
		closeFD(c.fd[c.at&(scanDepth-1)])
		if r < 0 {
			for ; c.at > 0; c.at-- {
				closeFD(c.fd[(c.at-1)&(scanDepth-1)])
			}
			return r
		}
		if c.at == 0 {
			return 0
		}
		c.at--
		sys(syscall.SYS_LSEEK, uintptr(c.fd[c.at&(scanDepth-1)]), uintptr(c.next[c.at&(scanDepth-1)]), 0, 0, 0)
	}
}

// nextDir goes down into the next directory: 1, 0 at the present one's end, or a negative errno.
//
//go:norace
func (s *State) nextDir() int {
	c := &s.scan
	fd := c.fd[c.at&(scanDepth-1)]
	for {
		n := sys(syscall.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&c.dent[0])), dentBytes, 0, 0)
		if n <= 0 {
			return n
		}
		for at := uint(0); at+19 < uint(n); {
			size, entry := s.entrySize(at), at
			if size < 20 || c.left == 0 {
				return -int(syscall.EXDEV)
			}
			c.left--
			at += size
			if !s.mayBeDir(entry) {
				continue
			}
			child := openat(fd, &c.dent[(entry+19)&(dentBytes-1)], syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
			switch {
			case child == -eNOENT, child == -int(syscall.ENOTDIR), child == -eLOOP:
				continue
			case child < 0, c.at+1 >= scanDepth:
				closeFD(child)
				return -int(syscall.EXDEV)
			}
			next := int64(0)
			for i := uint(8); i > 0; i-- {
				next = next<<8 | int64(c.dent[(entry+7+i)&(dentBytes-1)])
			}
			c.next[c.at&(scanDepth-1)] = next
			c.at++
			c.fd[c.at&(scanDepth-1)] = child
			return 1
		}
	}
}
