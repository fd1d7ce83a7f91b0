package supervisor

import (
	"syscall"
	"unsafe"
)

// Watching. A call that Rules.Watch alone has stopped is tried here, recorded if it fails for want of a path, and then carried out by the
// kernel (SECCOMP_USER_NOTIF_FLAG_CONTINUE): no bound depends on what is seen, since the mounts and Landlock hold it. The tool can change
// the path between the two, so the record is what it showed.

// onlyWatched reports whether no bound has stopped the call: FilterOf without Watch would let it go on. It looks at the
// number and at flags in a register, as the filter does; TestOnlyWatchedCallsGoOn compares the two.
//
//go:norace
func (s *State) onlyWatched() bool {
	bits := s.m.rb(offWatch)
	if bits&watchOn == 0 {
		return false
	}
	a := &s.req.args
	switch s.req.nr {
	case syscall.SYS_EXECVE, nrExecveat, nrStat, nrLstat, nrAccess, syscall.SYS_CHDIR, sysFstatat, nrStatx, syscall.SYS_FACCESSAT, sysFaccessat2:
		return true
	case nrCreat:
		return bits&watchNames == 0
	case syscall.SYS_OPENAT:
		return bits&watchNames == 0 || bits&watchReads == 0 && a[2]&openWrites == 0
	case nrOpen:
		return bits&watchNames == 0 || bits&watchReads == 0 && a[1]&openWrites == 0
	}
	return false
}

// observe lets the call in hand go on, and records it first if it is going to fail.
//
//go:norace
func (s *State) observe() {
	if s.watched != 0 && s.enter() == 0 && s.decodeWatched() == 0 && s.read(0) == 0 {
		if r := s.attempt(); r < 0 && !s.ask(r, true) {
			s.recordFailure(r)
		}
		if s.op == opExecute {
			s.knownID = 0 // another command line comes
		}
	}
	s.resolved[0].drop()
	if !s.sent {
		s.goOn(s.req.id)
	}
}

// goOn lets the kernel carry out a call.
//
//go:norace
func (s *State) goOn(id uint64) {
	s.resp.id, s.resp.val, s.resp.errno, s.resp.flags = id, 0, 0, notifyContinue
	sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlSend, uintptr(unsafe.Pointer(&s.resp)), 0, 0)
}

// decodeWatched is decode for the calls that are watched.
//
//go:norace
func (s *State) decodeWatched() int {
	a := &s.req.args
	switch s.req.nr {
	case syscall.SYS_EXECVE:
		return s.isLook(opExecute, cwd, a[0], mayExecute, 0)
	case nrExecveat:
		return s.isLook(opExecute, a[0], a[1], mayExecute, a[4])
	case nrStat, syscall.SYS_CHDIR:
		return s.isLook(opLook, cwd, a[0], 0, 0)
	case nrLstat:
		return s.isLook(opLook, cwd, a[0], 0, atNoFollow)
	case sysFstatat:
		return s.isLook(opLook, a[0], a[1], 0, a[3])
	case nrStatx:
		return s.isLook(opLook, a[0], a[1], 0, a[2])
	case nrAccess:
		return s.isLook(opLook, cwd, a[0], a[1], 0)
	case syscall.SYS_FACCESSAT:
		return s.isLook(opLook, a[0], a[1], a[2], 0)
	case sysFaccessat2:
		return s.isLook(opLook, a[0], a[1], a[2], a[3])
	}
	return s.decode()
}

// The bits of access(2).
const (
	mayExecute = 1
	mayWrite   = 2
	mayRead    = 4
)

//go:norace
func (s *State) isLook(op uint8, dirfd, addr, access, flags uint64) int {
	s.op, s.flags, s.mode = op, int(int32(flags)), int(access&7)
	s.in[0] = input{int(int32(dirfd)), addr, fromMemory, s.flags&atNoFollow == 0}
	if s.flags&atEmptyPath != 0 {
		s.in[0].from = fromEmpty
	}
	s.in[1].from = fromNothing
	return 0
}

// attempt says what will become of the call in hand: 0 or a negative errno. It changes nothing.
//
//go:norace
func (s *State) attempt() int {
	if r := s.find(0); r < 0 {
		return r
	}
	want := s.mode
	if s.op == opOpen {
		want = [4]int{mayRead, mayWrite, mayRead | mayWrite, 0}[s.flags&3]
		if s.flags&syscall.O_TRUNC != 0 {
			want |= mayWrite
		}
	}
	if !s.exists(0) {
		if s.op == opOpen && s.flags&syscall.O_CREAT != 0 {
			return s.mayCreate()
		}
		return s.resolved[0].stat
	}
	if want == 0 {
		return 0
	}
	return s.mayUse(want)
}

// mayUse asks for access to what resolved path 0 is. Landlock is not asked by faccessat2(2): where it alone holds the policy, what
// can be opened without an effect is opened for a moment.
//
//go:norace
func (s *State) mayUse(want int) int {
	sp := &s.resolved[0]
	dir, name := sp.dir, &sp.name[0]
	if sp.obj >= 0 {
		s.literal("")
		dir, name = sp.obj, &s.num[0]
	}
	r := sys(sysFaccessat2, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(want), atEmptyPath, 0)
	kind := sp.st.Mode & syscall.S_IFMT
	if r < 0 || s.op == opLook || s.m.rb(offWatch)&watchBare == 0 || kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
		return r
	}
	if s.op == opExecute && s.unreadableFile(dir, name) {
		return 0
	}
	how := syscall.O_RDONLY
	if want&mayWrite != 0 {
		how = syscall.O_WRONLY
	}
	fd := 0
	if sp.obj >= 0 {
		fd = s.reopen(sp.obj, how|syscall.O_NONBLOCK, 0)
	} else {
		fd = openat(dir, name, how|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	}
	closeFD(fd)
	return min(fd, 0)
}

// unreadableFile reports whether the mode of a file lets it be executed alone.
//
//go:norace
func (s *State) unreadableFile(dir int, name *byte) bool {
	return sys(sysFaccessat2, uintptr(dir), uintptr(unsafe.Pointer(name)), mayRead, atEmptyPath, 0) < 0
}

// mayCreate asks for access to the directory in which resolved path 0 is to be made.
//
//go:norace
func (s *State) mayCreate() int {
	sp := &s.resolved[0]
	s.literal("")
	r := sys(sysFaccessat2, uintptr(sp.dir), uintptr(unsafe.Pointer(&s.num[0])), mayWrite|mayExecute, atEmptyPath, 0)
	if r < 0 || s.m.rb(offWatch)&watchBare == 0 {
		return r
	}
	if r = s.judge(0); r == 0 && !sp.granted {
		r = -eACCES
	}
	return r
}

// recordFailure puts the call in hand, which fails with r, into the ring, if a path that the policy does not show could be
// why. A path that leads nowhere is recorded as the tool has spelled it, behind the kernel's path of where it begins. The path in s.m
// is overwritten.
//
//go:norace
func (s *State) recordFailure(r int) {
	if r != -eNOENT && r != -eACCES && r != -int(syscall.EROFS) || s.in[0].from == fromNothing {
		return
	}
	t := s.ring()
	if t.head-t.tail >= WatchRoom {
		t.beyond++
		return
	}
	w := &t.record[t.head&(WatchRoom-1)]
	if !s.describe(&w.denial) {
		return
	}
	w.number, w.hash = t.head, w.denial.sum()
	t.head++
}

// describe makes d the record of the call in hand, which fails for want of a path; false: the path cannot be told.
//
//go:norace
func (s *State) describe(d *denialRecord) bool {
	d.deed, d.reason, d.side = uint8(s.deed()), uint8(ReasonAbsent), 0
	for k := 0; k < 2; k++ {
		d.hit[k&1], d.git[k&1], d.size[k&1] = 0, 0, 0
		if k == 1 && d.size[0] == 0 || k == 1 && max(s.resolved[0].dir, s.resolved[0].obj) < 0 {
			break // the second path was not looked at
		}
		if s.in[k].from != fromNothing && s.op != opConnect && (s.op != opSymlink || k == 0) && s.spelling(k) {
			d.add(k, s.m.path[:], s.m.n)
		}
	}
	if d.size[0] == 0 {
		return false
	}
	if !s.in[0].follow {
		d.hit[0] = noFollow
	}
	if s.knownID != s.req.pid {
		s.identify(&s.known)
		s.knownID = s.req.pid
	}
	d.who = s.known
	sys(syscall.SYS_CLOCK_GETTIME, 0, uintptr(unsafe.Pointer(&d.time)), 0, 0, 0)
	d.count = 1
	return true
}

// spelling makes s.m.path the path that side k of the call is about.
//
//go:norace
func (s *State) spelling(k int) bool {
	sp := &s.resolved[k&1]
	if sp.dir >= 0 || sp.obj >= 0 {
		return s.pathOf(sp) == 0 && s.m.path[0] == '/'
	}
	n, p := s.plen[k&1], &s.path[k&1]
	at := uint(0)
	if n == 0 {
		return false
	}
	if p[0] != '/' {
		if sp.start < 0 || s.canonical(sp.start) <= 0 || s.m.path[0] != '/' {
			return false
		}
		if at = s.m.n; at > 1 {
			s.m.path[at&(longRoom-1)] = '/'
			at++
		}
	}
	for i := uint(0); i < n; i++ {
		s.m.path[(at+i)&(longRoom-1)] = p[i&(pathRoom-1)]
	}
	s.m.n = at + n
	return true
}

// ring returns the ring, which lies in no memory of the Go heap.
//
//go:norace
//go:nocheckptr
func (s *State) ring() *watchTable {
	return *(**watchTable)(unsafe.Pointer(&s.watched))
}
