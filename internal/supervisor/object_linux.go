package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

//go:norace
func (s *State) openNoLinks(dir int, path *byte, flags int) int {
	s.how.flags, s.how.mode, s.how.resolve = uint64(oPath|syscall.O_CLOEXEC|flags), 0, resolveNoLinks
	return sys(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&s.how)), unsafe.Sizeof(s.how), 0)
}

// canonical reads the path of a descriptor into s.m: its length, or a negative errno.
//
//go:norace
func (s *State) canonical(fd int) int {
	s.number("", uint(fd))
	n := sys(syscall.SYS_READLINKAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.m.path[0])), pathMax, 0)
	if n >= pathMax {
		return -eLONG
	}
	s.m.n = uint(n) & (pathRoom - 1)
	return n
}

// toolFD opens, as O_PATH, what the tool's descriptor fd refers to.
//
//go:norace
func (s *State) toolFD(fd int) int {
	if fd < 0 {
		return -int(syscall.EBADF)
	}
	s.number("fd/", uint(fd))
	r := openat(s.task, &s.num[0], oPath, 0)
	if r == -eNOENT {
		return -int(syscall.EBADF)
	}
	return r
}

// startDir opens what a relative path begins at: of this very thread, since threads may differ.
//
//go:norace
func (s *State) startDir(dirfd int) int {
	if dirfd == atFDCWD {
		s.literal("cwd")
		return openat(s.task, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
	}
	return s.toolFD(dirfd)
}

// reopen opens what an O_PATH descriptor stands for.
//
//go:norace
func (s *State) reopen(fd, flags, mode int) int {
	s.number("", uint(fd))
	return openat(s.fdDir, &s.num[0], flags|syscall.O_NOCTTY, mode)
}

// object makes sure that resolved path k has an O_PATH descriptor of the thing itself. What is asked of the resolved path later is
// asked of that descriptor.
//
//go:norace
func (s *State) object(k int) int {
	sp := &s.resolved[k&1]
	if sp.obj >= 0 {
		return 0
	}
	fd := openat(sp.dir, &sp.name[0], oPath|syscall.O_NOFOLLOW|sp.withoutSlash(), 0)
	if fd < 0 {
		return fd
	}
	if sp.owned {
		closeFD(sp.dir)
	}
	sp.dir, sp.owned, sp.obj, sp.stat = -1, false, fd, 1
	return 0
}

// withoutSlash takes the slash from the end of the name, behind which the kernel follows a link that has come to be there since, whatever
// O_NOFOLLOW says, and returns the flag that says the same.
//
//go:norace
func (sp *resolvedPath) withoutSlash() int {
	end := 0
	for end < len(sp.name) && sp.name[end&511] != 0 {
		end++
	}
	if end < 2 || sp.name[(end-1)&511] != '/' {
		return 0
	}
	sp.name[(end-1)&511] = 0
	return syscall.O_DIRECTORY
}

//go:norace
func (s *State) inProc(fd int) bool {
	r := sys(syscall.SYS_FSTATFS, uintptr(fd), uintptr(unsafe.Pointer(&s.w.fsBuf[0])), 0, 0, 0)
	return r < 0 || s.w.fsBuf[0] == magicProc
}

// closedProc reports whether the path in s.m, of a procfs, is below a process whose files the supervisor has a right to that the tool has
// not: its own, and where the supervisor is one of several (KeepApart) those of processes that are none of its descendants.
//
//go:norace
func (s *State) closedProc() bool {
	s.m.split()
	first := true
	for i := uint(0); i < s.m.nc; i++ {
		at, end := uint(s.m.off[i&(compRoom-1)]), uint(s.m.off[(i+1)&(compRoom-1)])-1
		v := uint(0)
		for ; at < end; at++ {
			c := s.m.path[at&(longRoom-1)]
			if c < '0' || c > '9' || v > 1<<32 {
				v = 0
				break
			}
			v = v*10 + uint(c-'0')
		}
		if v == 0 || !first && i+1 == s.m.nc && (s.m.isComp(i-1, "fd") || s.m.isComp(i-1, "fdinfo")) {
			continue // it numbers no process
		}
		if v == s.self || first && s.apart && !s.descends(v) {
			return true
		}
		first = false // what follows are its threads and descriptors
	}
	return false
}

// KeepApart is called in a supervisor of one command among several whose processes are in other Landlock domains: it does nothing for its
// tool with their files under /proc. Its tool's processes are those that descend from the supervisor, a subreaper.
//
//go:norace
func KeepApart(s *State) { s.apart = true }

// maxDescent is how many generations descends looks at.
const maxDescent = 10_000

// descends reports whether a process descends from the supervisor.
//
//go:norace
func (s *State) descends(pid uint) bool {
	for range maxDescent {
		if pid == s.self {
			return true
		}
		if pid <= 1 {
			return false
		}
		pid = s.parent(pid)
	}
	return false
}

// parent reads the parent of a process or thread (proc_pid_stat(5)): the second field after its name, whose end is the last parenthesis;
// 0: there is no such process.
//
//go:norace
func (s *State) parent(pid uint) uint {
	const word = "/stat\x00"
	at := s.number("", pid)
	for i := uint(0); i < uint(len(word)); i++ {
		s.num[(at+i)&63] = word[i]
	}
	fd := openat(s.procRoot, &s.num[0], syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if fd < 0 {
		return 0
	}
	n := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&s.stat[0])), unsafe.Sizeof(s.stat), 0, 0)
	closeFD(fd)
	end := 0
	for i := 0; i < n; i++ {
		if s.stat[i&127] == ')' {
			end = i
		}
	}
	v := uint(0)
	for i := end + 4; end > 0 && i < n && s.stat[i&127] >= '0' && s.stat[i&127] <= '9'; i++ {
		v = v*10 + uint(s.stat[i&127]-'0')
	}
	return v
}

// duplicateFD duplicates the tool's descriptor: the calling thread's own, where the kernel has descriptors of threads, since
// a thread can have another table (unshare(2), CLONE_FILES), and the first one can have ended.
//
//go:norace
func (s *State) duplicateFD(fd int) int {
	pidfd := sys(sysPidfdOpen, uintptr(s.req.pid), pidfdThread, 0, 0, 0)
	if pidfd == -eINVAL { // before Linux 6.9
		pid := s.leader()
		if pid == 0 {
			return -eACCES
		}
		pidfd = sys(sysPidfdOpen, uintptr(pid), 0, 0, 0, 0)
	}
	if pidfd < 0 {
		return -eACCES
	}
	got := sys(sysPidfdGet, uintptr(pidfd), uintptr(fd), 0, 0, 0)
	closeFD(pidfd)
	if s.alive() < 0 {
		closeFD(got)
		return -eACCES
	}
	return got
}

// load reads a regular file of at most 64 KiB into text k; a larger one is refused.
//
//go:norace
func (s *State) load(k, dir int, name *byte) int {
	t := &s.text[k&1]
	t.N = 0
	fd := openat(dir, name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if fd < 0 {
		return fd
	}
	for t.N < gittext.Room {
		r := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&t.B[t.N&(gittext.Room-1)])), uintptr(gittext.Room-t.N), 0, 0)
		if r <= 0 {
			closeFD(fd)
			return r
		}
		t.N += uint(r)
	}
	closeFD(fd)
	return s.refuse(ReasonText)
}

// isPlainDir reports whether the path that t's line names is that of a directory, without a link on the way.
//
//go:norace
func (s *State) isPlainDir(t *gittext.Text) bool {
	b, n := &s.w.b[0], uint(0)
	dir := s.rootDir
	if t.B[t.Local&(gittext.Room-1)] != '/' {
		if dir = s.textBase; dir < 0 {
			return false
		}
		b[0], b[1], b[2], n = '.', '.', '/', 3
	}
	for i := t.Local; i < t.LocalEnd && n < pathMax-1; i++ {
		b[n&(2*pathMax-1)] = t.B[i&(gittext.Room-1)]
		n++
	}
	b[n&(2*pathMax-1)] = 0
	fd := s.openNoLinks(dir, &b[0], syscall.O_DIRECTORY)
	if fd < 0 {
		return false
	}
	proc := s.inProc(fd)
	closeFD(fd)
	return !proc
}

// above returns the path of a name so many directories up.
//
//go:norace
func (s *State) above(up uint, name string) *byte {
	for i := 0; i < len(name) && i < 30; i++ {
		s.up[upName+i] = name[i]
	}
	s.up[upName+min(len(name), 30)] = 0
	return &s.up[(upName-3*min(up, upLevels))%upRoom]
}
