package guard

import (
	"syscall"
	"unsafe"
)

// The calls that make or remove one name. A refusal is EACCES; but where the kernel would have said that the name
// is there already, or is not there, that is said: `mkdir -p` and `rm -f` rely on it.

// newName refuses the name that spot k is to make when the rules say so by the bits in bar.
//
//go:norace
func (s *State) newName(k int, bar uint32) int {
	sp := &s.spot[k&1]
	if sp.obj >= 0 {
		return -eEXIST // ".", ".." and "/" always are
	}
	if sp.hit&bar != 0 {
		if s.exists(k) {
			return -eEXIST
		}
		return s.refuse()
	}
	return 0
}

//go:norace
func (s *State) makeDir() int {
	// A directory named .git is how a repository begins.
	r := s.newName(0, hitWhole|hitConfig|hitCommon)
	if r == 0 {
		r = s.takeUmask()
	}
	if r < 0 {
		return r
	}
	sp := &s.spot[0]
	return sys(syscall.SYS_MKDIRAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), 0, 0)
}

//go:norace
func (s *State) makeNode() int {
	r := s.newName(0, hitNames|hitHidden)
	if r == 0 {
		r = s.takeUmask()
	}
	if r < 0 {
		return r
	}
	sp := &s.spot[0]
	return sys(syscall.SYS_MKNODAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), uintptr(s.dev), 0)
}

// symlink also refuses the names above a protected one: a link .git/info would bring its own attributes file. In
// .git/modules, where any name may be above one, a link to a neighbour stays among protected names, and git init
// makes such a one to learn whether links work. Its text is path 1.
//
//go:norace
func (s *State) symlink() int {
	bar := uint32(hitNames | hitHidden | hitPrefix)
	for i := uint(0); i < s.plen[1]; i++ {
		if c := s.path[1][i&(pathRoom-1)]; c == '/' || c == '.' {
			bar |= hitDeep
		}
	}
	if r := s.newName(0, bar); r < 0 {
		return r
	}
	sp := &s.spot[0]
	return sys(syscall.SYS_SYMLINKAT, uintptr(unsafe.Pointer(&s.path[1][0])), uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), 0, 0)
}

// unlink lets go what the tool could make anew: a .git file, a worktree's commondir, and a git configuration
// that holds harmless lines alone.
//
//go:norace
func (s *State) unlink() int {
	sp := &s.spot[0]
	if sp.obj >= 0 {
		return s.unlinkDots()
	}
	if sp.hit&(hitWhole|hitConfig) != 0 && s.exists(0) {
		if sp.hit&hitWhole != 0 || s.mode != 0 || !s.plainConfig(sp) {
			return s.refuse()
		}
	}
	return sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(s.mode), 0, 0)
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
