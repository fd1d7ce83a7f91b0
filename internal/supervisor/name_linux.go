package supervisor

import (
	"syscall"
	"unsafe"
)

// The calls that make or remove one name. A refusal is EACCES; but where the kernel would have said that the name
// is there already, or is not there, that is said: `mkdir -p` and `rm -f` rely on it.

// newName refuses the name that resolved path k is to make when the rules say so by the bits in bar.
//
//go:norace
func (s *State) newName(k int, bar uint32) int {
	sp := &s.resolved[k&1]
	if sp.obj >= 0 {
		return -eEXIST // ".", ".." and "/" always are
	}
	if sp.hit&bar != 0 {
		if s.exists(k) {
			return -eEXIST
		}
		return s.refuseAt(k, ReasonName)
	}
	return 0
}

//go:norace
func (s *State) makeDir() int {
	// A directory named .git is how a repository begins.
	sp := &s.resolved[0]
	bar := uint32(hitNames&^hitGitFile | hitPlace)
	if s.noNewGit() {
		bar |= hitGitFile
	}
	r := s.newName(0, bar)
	if r == 0 {
		r = s.completes(sp, true)
	}
	if r == 0 {
		r = s.takeUmask()
	}
	if r < 0 {
		return r
	}
	if sp.inside && s.m.r16(offNames) > 0 && s.mode&0o1000 == 0 {
		s.leaveOut(s.mode&^int(s.umask)&writeOthers, ReasonOthers)
	}
	s.beforeMade()
	r = sys(syscall.SYS_MKDIRAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), 0, 0)
	if r == 0 {
		r = s.completed(sp, atRemoveDir)
	}
	if r == 0 {
		r = s.afterMade()
	}
	return r
}

//go:norace
func (s *State) makeNode() int {
	sp := &s.resolved[0]
	r := s.newName(0, hitNames|hitHidden)
	if kind := s.mode & syscall.S_IFMT; r == 0 && sp.git.inside && kind != 0 && kind != syscall.S_IFREG {
		r = s.refuse(ReasonNode)
	}
	if r == 0 {
		r = s.mayBeFile(0)
	}
	if r == 0 {
		r = s.completes(sp, true)
	}
	if r == 0 {
		r = s.takeUmask()
	}
	if r < 0 {
		return r
	}
	r = sys(syscall.SYS_MKNODAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), uintptr(s.dev), 0)
	return s.made(0, r)
}

// made looks once more at a name that was just made at resolved path k, and removes it when it lies in a git directory by now.
//
//go:norace
func (s *State) made(k, r int) int {
	sp := &s.resolved[k&1]
	if r < 0 || !sp.git.rules || sp.git.inside && !sp.git.loose() {
		return r
	}
	if late := s.judge(k); late < 0 || sp.git.inside && (sp.hit&hitNames != 0 || sp.git.up == 0 && s.conforms(sp.dir, false) < 0) {
		sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), 0, 0, 0)
		return s.refuseAt(k, ReasonRace)
	}
	return r
}

// symlink also refuses the names above a protected one: a link .cargo would bring its own config. In a git directory, where the
// user's git would write through a link, it refuses all but the one by which git init learns whether links work: to a neighbour.
// Its text is path 1.
//
//go:norace
func (s *State) symlink() int {
	sp := &s.resolved[0]
	bar := uint32(hitNames | hitHidden | hitPrefix)
	if !s.toNeighbour() {
		bar |= hitDeep
	}
	r := s.newName(0, bar)
	if r == 0 && sp.git.inside && (sp.git.class != gitProbe || !s.toNeighbour()) {
		r = s.refuse(ReasonNode)
	}
	if r == 0 && !s.exists(0) && s.onWay(0) {
		r = s.refuse(ReasonWay)
	}
	if r == 0 {
		r = s.completes(sp, false)
	}
	if r == 0 && s.record != 0 && sp.inside && !s.exists(0) && s.isOld(sp) {
		r = s.mayLead(0)
	}
	if r < 0 {
		return r
	}
	r = sys(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(&s.path[1][0])), uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), 0, 0)
	if r == 0 && s.record != 0 && sp.inside && s.isOld(sp) { // another session may have taken the user's directory away since
		if r = s.mayLead(0); r < 0 {
			sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), 0, 0, 0)
		}
	}
	return s.made(0, r)
}

// toNeighbour reports whether path 1 has neither a slash nor a dot.
//
//go:norace
func (s *State) toNeighbour() bool {
	for i := uint(0); i < s.plen[1]; i++ {
		if c := s.path[1][i&(pathRoom-1)]; c == '/' || c == '.' {
			return false
		}
	}
	return true
}

// unlink lets go what the tool could make anew: a .git file, a worktree's commondir, a git configuration
// that holds harmless lines alone; a lock only if this supervisor made it.
//
//go:norace
func (s *State) unlink() int {
	sp := &s.resolved[0]
	if sp.obj >= 0 {
		return s.unlinkDots()
	}
	if sp.hit&hitPlace != 0 && s.exists(0) {
		return s.refuse(ReasonName)
	}
	own := -1
	if sp.hit&(hitWhole|hitConfig|hitLock) != 0 && sp.hit&hitLoose == 0 && s.exists(0) {
		own = s.ownLock(0)
		switch {
		case sp.hit&hitWhole != 0, s.mode != 0, sp.hit&hitLock != 0 && own < 0, sp.hit&hitConfig != 0 && !s.plainConfig(sp):
			return s.refuse(ReasonName)
		}
	}
	r := s.ceases(sp)
	if r == 0 {
		r = s.leaving(0)
	}
	if r < 0 {
		return r
	}
	r = sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), 0, 0)
	if r == 0 && s.record != 0 && s.mode&atRemoveDir != 0 && sp.stat == 0 {
		dev := uint64(sp.st.Dev)
		s.forgetMade(uint32(dev>>8&0xfff)<<20|uint32(dev&0xff|dev>>12&0xfff00), sp.st.Ino)
	}
	if r == 0 && own >= 0 {
		s.locks[own&(lockRoom-1)].forget()
	}
	return r
}

// unlinkDots answers for names that cannot be removed: rmdir(2), unlink(2).
//
//go:norace
func (s *State) unlinkDots() int {
	n := s.plen[0]
	for n > 1 && s.path[0][(n-1)&(pathRoom-1)] == '/' {
		n--
	}
	switch {
	case s.mode&atRemoveDir == 0:
		return -eISDIR
	case s.path[0][(n-1)&(pathRoom-1)] == '/':
		return -int(syscall.EBUSY)
	case n >= 2 && s.path[0][(n-2)&(pathRoom-1)] == '.':
		return -int(syscall.ENOTEMPTY)
	}
	return -eINVAL
}
