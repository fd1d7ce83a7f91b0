package supervisor

import (
	"syscall"
	"unsafe"
)

// open carries out an open and gives the tool the descriptor.
//
//go:norace
func (s *State) open() int {
	sp, r := &s.resolved[0], 0
	if sp.git.later {
		if r = s.openFirst(); r != isJudged {
			return r
		}
	}
	if !s.exists(0) {
		if s.flags&syscall.O_CREAT == 0 {
			return sp.stat
		}
		switch sp.hit & (hitNames | hitHidden) {
		case 0:
		case hitGitFile, hitCommon, hitText, hitConfig:
			return s.deferWrite()
		case hitLock:
			return s.openLock()
		default:
			return s.refuse(ReasonName)
		}
		if r = s.mayBeFile(0); r == 0 {
			r = s.completes(sp, true)
		}
		if r == 0 {
			r = s.takeUmask()
		}
	} else {
		if r = s.mayOpen(s.flags); r == isDeferred {
			return s.deferWrite()
		}
		if r == 0 && s.flags&oTmpfileBit != 0 {
			r = s.takeUmask()
		}
	}
	if r < 0 {
		return r
	}
	switch r = s.openChecked(s.flags, s.mode); r {
	case isTerminal:
		return s.openTerminal(s.flags)
	case isPutOff:
		return s.putOff(s.flags)
	}
	if r >= 0 && s.flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0 {
		late := 0
		if sp.obj >= 0 {
			late = s.stillMay(s.flags)
		} else {
			late = s.heldSince(sp)
		}
		if late < 0 {
			closeFD(r)
			return late
		}
	}
	return s.give(s.req.id, r, s.flags)
}

// mayOpen applies the rules to an existing object: 0, isDeferred or a negative errno.
//
//go:norace
func (s *State) mayOpen(flags int) int {
	const excl = syscall.O_CREAT | syscall.O_EXCL
	sp := &s.resolved[0]
	kind := sp.st.Mode & syscall.S_IFMT
	switch {
	case flags&excl == excl && flags&oTmpfileBit == 0:
		return -eEXIST
	case sp.hit&hitHidden != 0:
		return s.refuse(ReasonName)
	case kind == syscall.S_IFLNK:
		return -eLOOP
	case kind == syscall.S_IFDIR && flags&(syscall.O_CREAT|oTmpfileBit) == syscall.O_CREAT:
		return -eISDIR
	case kind == syscall.S_IFDIR && sp.hit&hitWhole == 0:
		return 0
	case sp.hit&(hitGitFile|hitCommon|hitText|hitModules) != 0 && flags&syscall.O_TRUNC != 0:
		return isDeferred
	case sp.hit&hitNames != 0 && flags&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_CREAT|syscall.O_TRUNC) != 0:
		return s.refuse(ReasonName)
	}
	return 0
}

// stillMay judges what resolved path 0 stands for, an object, by the path that it has once it is open. From then on no index is made of it,
// since replaceIndex gets no lease.
//
//go:norace
func (s *State) stillMay(flags int) int {
	r := s.judge(0)
	if r == 0 && !s.exists(0) {
		r = s.resolved[0].stat
	}
	if r == 0 {
		r = s.mayOpen(flags)
	}
	if r == isDeferred {
		return s.refuse(ReasonRace)
	}
	return r
}

// openChecked opens resolved path 0 without ever waiting: a descriptor, a negative errno, or one of the two above. What the
// kernel would have the tool wait for is put off, with s.late as what is open already.
//
//go:norace
func (s *State) openChecked(flags, mode int) int {
	sp, kind := &s.resolved[0], uint32(0)
	if sp.stat == 0 {
		kind = sp.st.Mode & syscall.S_IFMT
	}
	if kind == syscall.S_IFCHR && sp.st.Rdev == 5<<8 {
		return isTerminal
	}
	fd := 0
	makes, terminal := s.isDevice()
	if terminal {
		return s.openOwnTerminal(flags)
	}
	if sp.obj >= 0 {
		fd = s.reopen(sp.obj, flags&^(syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW)|syscall.O_NONBLOCK, mode)
	} else {
		if flags&syscall.O_CREAT == 0 {
			flags |= sp.withoutSlash()
		}
		fd = openat(sp.dir, &sp.name[0], flags|syscall.O_NOFOLLOW|syscall.O_NOCTTY|syscall.O_NONBLOCK, mode)
	}
	if makes && fd >= 0 {
		if r := s.keepOther(fd); r < 0 {
			closeFD(fd)
			return r
		}
	}
	s.pendingFD = -1
	waits := flags&syscall.O_NONBLOCK == 0
	switch {
	case waits && fd == -int(syscall.EAGAIN), waits && kind == syscall.S_IFIFO && fd == -int(syscall.ENXIO):
		return isPutOff
	case fd < 0 || kind != syscall.S_IFIFO:
	case flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0:
		s.wakeReaders(uint64(sp.st.Dev), sp.st.Ino)
	case waits: // an end for reading opens at once, and is kept until the other is opened
		s.pendingFD = fd
		return isPutOff
	}
	return fd
}

// GivenTerminal says which session has for its controlling terminal one that the command was given, which is no terminal of the sandbox's.
//
//go:norace
func GivenTerminal(s *State, session uint64) { s.given = session }

// openTerminal opens /dev/tty for the tool. The device means the caller's controlling terminal, which belongs to a
// session (credentials(7)): for a caller in the supervisor's own session it is the supervisor's. That of another session is
// looked for among the caller's first descriptors, then in /dev/pts, by its device number. A second thread may
// change what a descriptor's number means at any time: each is taken once, and what was looked at is what is opened.
//
//go:norace
func (s *State) openTerminal(flags int) int {
	session, dev := s.terminal(s.task, "stat")
	if dev == 0 {
		return -int(syscall.ENXIO)
	}
	flags &^= syscall.O_CREAT | syscall.O_NOFOLLOW
	if ourSession, ours := s.terminal(s.procRoot, "self/stat"); ourSession == session && ours == dev {
		s.literal("/dev/tty")
		return s.give(s.req.id, openat(atFDCWD, &s.num[0], flags|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0), flags)
	}
	for n := 0; n < 16; n++ {
		if fd := s.reopenIf(s.toolFD(n), dev, flags); fd >= 0 {
			return s.give(s.req.id, fd, flags)
		}
	}
	if s.m.rb(offDevices)&devTerminals != 0 {
		return s.give(s.req.id, s.openControlling(dev, flags), flags)
	}
	major, minor := uint(dev>>8&0xfff), uint(dev&0xff|dev>>12&0xfff00)
	if session == s.given || major < 136 || major > 143 { // the sandbox's terminal of this number is another one
		return -int(syscall.ENXIO)
	}
	s.number("/dev/pts/", (major-136)<<8|minor)
	return s.give(s.req.id, openat(atFDCWD, &s.num[0], flags|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0), flags)
}

// reopenIf opens what obj stands for if it is the character device dev, and closes obj.
//
//go:norace
func (s *State) reopenIf(obj int, dev uint64, flags int) int {
	if obj < 0 {
		return obj
	}
	s.literal("")
	fd := lstatat(obj, &s.num[0], &s.st)
	switch {
	case fd < 0:
	case s.st.Mode&syscall.S_IFMT != syscall.S_IFCHR || s.st.Rdev != dev:
		fd = -int(syscall.ENXIO)
	default:
		fd = s.reopen(obj, flags|syscall.O_NONBLOCK, 0)
	}
	closeFD(obj)
	return fd
}

// terminal returns the session of a process and the device number of its controlling terminal, 0 for none: fields 6 and
// 7 of its stat file (proc_pid_stat(5)).
//
//go:norace
func (s *State) terminal(dir int, stat string) (session, dev uint64) {
	s.literal(stat)
	fd := openat(dir, &s.num[0], syscall.O_RDONLY, 0)
	if fd < 0 {
		return 0, 0
	}
	n := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&s.small[0])), 500, 0, 0)
	closeFD(fd)
	at := n
	for at > 0 && s.small[at&511] != ')' { // the name before it may hold anything
		at--
	}
	blanks := 0
	for ; at < n && blanks < 6; at++ {
		c := s.small[at&511]
		digit := c >= '0' && c <= '9'
		switch {
		case c == ' ':
			blanks++
		case digit && blanks == 4:
			session = session*10 + uint64(c-'0')
		case digit && blanks == 5:
			dev = dev*10 + uint64(c-'0')
		}
	}
	return session, dev
}
