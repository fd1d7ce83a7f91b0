package supervisor

import "syscall"

// A lock file, config.lock, becomes the configuration. So it is the tool's only if this supervisor made it for the tool, with
// O_EXCL: the user's own git, or that of another sandbox, may be writing one at the same time. Each is remembered by an O_PATH
// descriptor, which keeps its inode from being another's.

// openLock makes a lock file for the tool.
//
//go:norace
func (s *State) openLock() int {
	const excl = syscall.O_CREAT | syscall.O_EXCL
	sp := &s.resolved[0]
	if s.flags&excl != excl || s.flags&oTmpfileBit != 0 || sp.hit&(hitNames|hitHidden) != hitLock || sp.dir < 0 {
		return s.refuse(ReasonLock)
	}
	if r := s.takeUmask(); r < 0 {
		return r
	}
	fd := openat(sp.dir, &sp.name[0], s.flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, s.mode)
	if fd < 0 {
		return fd
	}
	l := &s.locks[s.turn&(lockRoom-1)]
	for i := range s.locks {
		if s.locks[i].fd == 0 {
			l = &s.locks[i]
		}
	}
	s.turn++
	l.forget()
	s.literal("")
	if r := lstatat(fd, &s.num[0], &s.st); r < 0 {
		closeFD(fd)
		return r
	}
	pin := s.reopen(fd, oPath, 0)
	if pin < 0 {
		closeFD(fd)
		return pin
	}
	l.fd, l.dev, l.ino = pin, uint64(s.st.Dev), s.st.Ino
	return s.give(s.req.id, fd, s.flags)
}

//go:norace
func (l *lock) forget() {
	if l.fd > 0 {
		closeFD(l.fd)
	}
	l.fd = 0
}

// ownLock returns which lock of this supervisor's resolved path k is, or -1.
//
//go:norace
func (s *State) ownLock(k int) int {
	if !s.exists(k) {
		return -1
	}
	st := &s.resolved[k&1].st
	for i := range s.locks {
		if s.locks[i].fd > 0 && s.locks[i].dev == uint64(st.Dev) && s.locks[i].ino == st.Ino {
			return i
		}
	}
	return -1
}

// lockedByOther reports whether the name of resolved path b has, or may have, a lock that is not this supervisor's.
//
//go:norace
func (s *State) lockedByOther(b *resolvedPath) bool {
	n := uint(0)
	for ; n < 256 && b.name[n] != 0; n++ {
		s.small[n&511] = b.name[n]
	}
	const tail = ".lock"
	for i := 0; i < len(tail); i++ {
		s.small[(n+uint(i))&511] = tail[i]
	}
	s.small[(n+uint(len(tail)))&511] = 0
	if r := lstatat(b.dir, &s.small[0], &s.st); r < 0 {
		return r != -eNOENT // what cannot be asked about may be there
	}
	for i := range s.locks {
		if s.locks[i].fd > 0 && s.locks[i].dev == uint64(s.st.Dev) && s.locks[i].ino == s.st.Ino {
			return false
		}
	}
	return true
}

// locksName reports whether resolved path a is the lock of resolved path b: the same directory, and b's name with .lock behind.
//
//go:norace
func (s *State) locksName(a, b *resolvedPath) bool {
	n := uint(0)
	for ; n < 256 && b.name[n] != 0; n++ {
		if a.name[n] != b.name[n] {
			return false
		}
	}
	const tail = ".lock"
	for i := 0; i <= len(tail); i++ {
		c := byte(0)
		if i < len(tail) {
			c = tail[i]
		}
		if a.name[(n+uint(i))&511] != c {
			return false
		}
	}
	s.literal("")
	if lstatat(a.dir, &s.num[0], &s.st) < 0 {
		return false
	}
	dev, ino := s.st.Dev, s.st.Ino
	return lstatat(b.dir, &s.num[0], &s.st) == 0 && dev == s.st.Dev && ino == s.st.Ino
}
