package guard

import (
	"syscall"
	"unsafe"
)

// rename refuses to take a protected name away, to put anything in its place, and to move a directory onto or away
// from a name above a protected one: what lies in it would become, or cease to be, protected. A directory that is
// moved with its `.git` inside keeps its protection, since names count at every depth. What lies outside the roots,
// where names are not looked at, is another file system to the tool, as it is where mounts divide them: else a directory
// could be filled there, or read, and be moved (EXDEV, on which mv copies).
//
//go:norace
func (s *State) rename() int {
	a, b := &s.spot[0], &s.spot[1]
	if a.obj >= 0 || b.obj >= 0 {
		return -int(syscall.EBUSY)
	}
	if a.inside != b.inside {
		return -int(syscall.EXDEV)
	}
	if a.hit|b.hit != 0 {
		if r := s.mayRename(); r <= 0 {
			return r
		}
	}
	return s.renameNow()
}

//go:norace
func (s *State) renameNow() int {
	a, b := &s.spot[0], &s.spot[1]
	return sys(sysRename, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), uintptr(s.flags))
}

// mayRename decides a rename that touches the rules: 1 to go on, 0 when it is done, or a negative errno.
//
//go:norace
func (s *State) mayRename() int {
	if !s.exists(0) {
		return s.spot[0].stat
	}
	r := s.leaves(0)
	if r == 0 && s.flags&renameExchange != 0 {
		if !s.exists(1) {
			return s.spot[1].stat
		}
		if r = s.leaves(1); r == 0 {
			r = s.arrives(1, 0)
		}
	}
	if r == 0 {
		r = s.arrives(0, 1)
	}
	if r < 0 {
		return r
	}
	if s.spot[1].hit&hitConfig != 0 {
		if s.flags != 0 {
			return s.refuse()
		}
		return s.replaceConfig()
	}
	return 1
}

// leaves decides whether what spot k names may go elsewhere.
//
//go:norace
func (s *State) leaves(k int) int {
	hit := s.spot[k&1].hit
	dir := s.typeOf(k) == syscall.S_IFDIR
	if hit&(hitWhole|hitConfig|hitCommon|hitHidden) != 0 || (hit&hitGitFile != 0 && !dir) || (hit&(hitPrefix|hitDeep) != 0 && dir) {
		return s.refuse()
	}
	return 0
}

// arrives decides whether what spot k names may stand at the name of spot l; a GitConfig name is decided later.
//
//go:norace
func (s *State) arrives(k, l int) int {
	hit, kind := s.spot[l&1].hit, s.typeOf(k)
	bar := uint32(hitWhole | hitCommon | hitHidden | hitGitFile)
	switch kind {
	case syscall.S_IFDIR, syscall.S_IFLNK:
		bar |= hitPrefix | hitDeep | hitConfig
	}
	if l == 0 {
		bar |= hitConfig
	}
	if hit&bar != 0 {
		return s.refuse()
	}
	return 0
}

// hardLink gives no second name to what is protected, for its content could be changed by that, and none of the
// protected names to anything.
//
//go:norace
func (s *State) hardLink() int {
	if r := s.object(0); r < 0 {
		return r
	}
	kind := s.typeOf(0)
	if s.spot[0].stat < 0 {
		return s.spot[0].stat
	}
	if s.spot[0].hit&(hitNames|hitHidden) != 0 {
		return s.refuse()
	}
	bar := uint32(hitNames | hitHidden)
	if kind == syscall.S_IFLNK {
		bar |= hitPrefix | hitDeep
	}
	if r := s.newName(1, bar); r < 0 {
		return r
	}
	if s.spot[0].inside != s.spot[1].inside {
		return -int(syscall.EXDEV)
	}
	s.number("", uint(s.spot[0].obj))
	b := &s.spot[1]
	return sys(syscall.SYS_LINKAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), atFollow)
}
