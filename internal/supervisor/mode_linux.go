package supervisor

import (
	"syscall"
	"unsafe"
)

// chmod leaves the mode of a git configuration to the tool, but for the bits of withoutOthers: git init flips it to learn whether modes work. The bits of
// setIDs are left out for what is no directory, as the kernel leaves S_ISGID out for a group that is not the caller's.
//
//go:norace
func (s *State) chmod() int {
	group := s.groupAbove()
	if r := s.object(0); r < 0 {
		return r
	}
	kind := s.typeOf(0)
	if s.resolved[0].stat < 0 {
		return s.resolved[0].stat
	}
	if s.resolved[0].hit&(hitWhole|hitFixed|hitHidden) != 0 { // a mode could show others what is hidden
		return s.refuse(ReasonName)
	}
	if r := s.fenced(); r < 0 {
		return r
	}
	if kind == syscall.S_IFLNK {
		return -int(syscall.EOPNOTSUPP)
	}
	if kind != syscall.S_IFDIR {
		s.leaveOut(s.mode&setIDs, ReasonSetID)
	} else {
		s.leaveOut(s.forOthers(), ReasonOthers)
	}
	s.withoutOthers(kind, group)
	s.number("", uint(s.resolved[0].obj))
	return sys(syscall.SYS_FCHMODAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(s.mode), 0, 0)
}

// forOthers returns what of the mode that the directory of resolved path 0 is to have would let other users make protected names in it, or
// rename them, and read in it what is hidden from the tool: hidden files keep their modes. What it has already stays. The sticky bit keeps
// others from renaming, which is enough in a directory that the tool has made.
//
//go:norace
func (s *State) forOthers() (bits int) {
	const sticky, shown = 0o1000, 0o055
	sp := &s.resolved[0]
	if !sp.granted || s.m.r16(offNames) == 0 || s.pathOf(sp) < 0 || s.m.inOwn() {
		return 0
	}
	had, made := int(sp.st.Mode), s.madeByTool(sp.obj)
	if (had&writeOthers == 0 || had&sticky != 0) && (!made || s.mode&sticky == 0) {
		bits = s.mode & writeOthers
	}
	if s.m.rb(offDevices)&devHides != 0 && !made {
		bits |= s.mode &^ had & shown
	}
	return bits
}

// groupAbove reports whether the group can write the directory that resolved path 0 is a name in.
//
//go:norace
func (s *State) groupAbove() bool {
	s.literal(".")
	dir := s.resolved[0].dir
	return dir >= 0 && lstatat(dir, &s.num[0], &s.st) == 0 && s.st.Mode&writeGroup != 0
}

// withoutOthers takes from the mode that resolved path 0 is to have, which is of this kind, what would let others of the machine write what git
// obeys: for all users in a git directory, and in .gitmodules; for the group of a git directory itself and of texts in it, where it has it not
// yet. What is new in a directory of it that the group can write gets it, as git gives it with core.sharedRepository.
//
//go:norace
func (s *State) withoutOthers(kind uint32, groupAbove bool) {
	const texts = hitConfig | hitText | hitLock | hitGitFile | hitCommon
	sp := &s.resolved[0]
	top := kind == syscall.S_IFDIR && (sp.hit&hitGitFile != 0 || sp.git.rules && shaped(s.keys(sp.obj)))
	if !top && !sp.git.inside && sp.hit&texts == 0 {
		return
	}
	s.mode &^= writeOthers
	if sp.st.Mode&writeGroup != 0 || groupAbove && sp.git.inside {
		return
	}
	if top || sp.hit&texts != 0 || kind == syscall.S_IFDIR {
		s.mode &^= writeGroup
	}
}

// truncate opens the file and sets its length, so that a lease cannot hold the supervisor up.
//
//go:norace
func (s *State) truncate() int {
	if s.mode < 0 {
		return -eINVAL
	}
	r := s.object(0)
	if r < 0 {
		return r
	}
	kind := s.typeOf(0)
	switch {
	case s.resolved[0].stat < 0:
		return s.resolved[0].stat
	case kind == syscall.S_IFDIR:
		return -eISDIR
	case kind != syscall.S_IFREG:
		return -eINVAL
	case s.resolved[0].hit&(hitNames|hitHidden) != 0:
		return s.refuse(ReasonName)
	case s.pastLimit(s.mode):
		return -int(syscall.EFBIG)
	}
	fd := s.reopen(s.resolved[0].obj, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if fd < 0 {
		return fd
	}
	if r = s.stillMay(syscall.O_WRONLY); r == 0 {
		r = sys(syscall.SYS_FTRUNCATE, uintptr(fd), uintptr(s.mode), 0, 0, 0)
	}
	closeFD(fd)
	return r
}

// pastLimit reports whether size is above the tool's own RLIMIT_FSIZE.
//
//go:norace
func (s *State) pastLimit(size int) bool {
	const rlimitFsize = 1
	r := sys(syscall.SYS_PRLIMIT64, uintptr(s.req.pid), rlimitFsize, 0, uintptr(unsafe.Pointer(&s.w.fsBuf[0])), 0)
	return r < 0 || uint64(size) > s.w.fsBuf[0]
}
