package supervisor

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
	a, b := &s.resolved[0], &s.resolved[1]
	if a.obj >= 0 || b.obj >= 0 {
		return -int(syscall.EBUSY)
	}
	if a.inside != b.inside {
		return -int(syscall.EXDEV)
	}
	if a.hit|b.hit != 0 || a.git.inside || b.git.inside || a.git.rules && a.keyOf() != 0 || b.git.rules && b.keyOf() != 0 {
		if r := s.mayRename(); r <= 0 {
			return r
		}
	}
	if r := s.keepsWays(); r < 0 {
		return r
	}
	r := s.leaving(0)
	if r == 0 {
		r = s.leaving(1) // it is replaced, or exchanged
	}
	if r == 0 {
		r = s.arriving(0, 1, 0)
	}
	if r == 0 && s.flags&renameExchange != 0 {
		r = s.arriving(1, 0, 1)
	}
	if r < 0 {
		return r
	}
	if r = s.renamed(s.renameNow()); r < 0 {
		return r
	}
	late := s.arriving(0, 1, 1)
	if late == 0 && s.flags&renameExchange != 0 {
		late = s.arriving(1, 0, 0)
	}
	if late < 0 {
		s.takeBack()
		return late
	}
	return r
}

// takeBack undoes the rename in hand. Where another session has put something at the old name meanwhile, what was renamed gets the name of a copy:
// it must not stay.
//
//go:norace
func (s *State) takeBack() {
	a, b := &s.resolved[0], &s.resolved[1]
	old := uintptr(unsafe.Pointer(&a.name[0]))
	if sys(sysRename, uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), uintptr(a.dir), old, uintptr(s.flags&renameExchange)) == 0 {
		return
	}
	if fd := s.newCopy(a.dir); fd >= 0 {
		closeFD(fd)
		s.dropCopy(a.dir)
		old = uintptr(unsafe.Pointer(&s.copyName[0]))
		sys(sysRename, uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), uintptr(a.dir), old, renameNoReplace)
	}
}

// renamed looks once more at the new name, and takes it back when it lies in a git directory that was none before.
//
//go:norace
func (s *State) renamed(r int) int {
	b := &s.resolved[1]
	if r < 0 || !b.git.rules || b.git.inside && !b.git.loose() {
		return r
	}
	if late := s.judge(1); late >= 0 && (!b.git.inside || b.hit&hitNames == 0 && (b.git.up != 0 || b.keyOf() == 0 || s.conforms(b.dir, false) == 0)) {
		return r
	}
	s.takeBack()
	return s.refuseAt(1, ReasonRace)
}

// mayRename decides a rename that touches the rules: 1 to go on, 0 when it is done, or a negative errno.
//
//go:norace
func (s *State) mayRename() int {
	if !s.exists(0) {
		return s.resolved[0].stat
	}
	r := s.leaves(0)
	if r == 0 && s.flags&renameExchange != 0 {
		if !s.exists(1) {
			return s.resolved[1].stat
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
	if s.resolved[1].hit&(hitConfig|hitText) != 0 {
		switch {
		case s.flags == renameNoReplace && s.exists(1):
			return -eEXIST
		case s.flags&^renameNoReplace != 0:
			return s.refuseAt(1, ReasonName)
		}
		if s.resolved[1].hit&hitText != 0 && s.resolved[1].textKind() == textIndex {
			return s.replaceIndex()
		}
		return s.replaceChecked()
	}
	if s.resolved[0].hit&hitLock != 0 {
		return s.lockAside()
	}
	return 1
}

// lockAside lets git stash make index.stash.N of its own index.lock; no other lock becomes anything but what it is the lock of.
//
//go:norace
func (s *State) lockAside() int {
	a, b := &s.resolved[0], &s.resolved[1]
	i := s.ownLock(0)
	if i < 0 || s.flags != 0 || !a.isName("index.lock") || !b.git.inside || b.git.class != gitData {
		return s.refuseAt(1, ReasonLock)
	}
	r := s.renameNow()
	if r == 0 {
		s.locks[i&(lockRoom-1)].forget()
	}
	return r
}

// leaves decides whether what resolved path k names may go elsewhere.
//
//go:norace
func (s *State) leaves(k int) int {
	sp := &s.resolved[k&1]
	dir := s.typeOf(k) == syscall.S_IFDIR
	if sp.hit&(hitWhole|hitConfig|hitCommon|hitHidden|hitPlace) != 0 {
		return s.refuseAt(k, ReasonName)
	}
	if sp.hit&hitGitFile != 0 {
		// git submodule absorbgitdirs; elsewhere, a repository would be without its hooks.
		if to := &s.resolved[(k+1)&1]; !dir || to.git.class != gitModules || !s.shapeOf(sp) {
			return s.refuseAt(k, ReasonName)
		}
		return 0
	}
	if dir && sp.hit&(hitPrefix|hitDeep) != 0 {
		return s.refuseAt(k, ReasonPrefix)
	}
	if dir && sp.git.inside {
		switch sp.git.class {
		case gitTree, gitData:
		case gitModules:
			if !s.shapeOf(sp) {
				return s.refuseAt(k, ReasonName)
			}
		default:
			return s.refuseAt(k, ReasonName)
		}
	}
	return s.ceases(sp)
}

// arrives decides whether what resolved path k names may stand at the name of resolved path l; a GitConfig name and a text are decided later.
//
//go:norace
func (s *State) arrives(k, l int) int {
	a, b, kind := &s.resolved[k&1], &s.resolved[l&1], s.typeOf(k)
	bar := uint32(hitWhole | hitCommon | hitHidden | hitPlace | hitGitFile | hitLock)
	if kind != syscall.S_IFREG {
		bar |= hitPrefix | hitDeep | hitConfig | hitText
	}
	if l == 0 {
		bar |= hitConfig | hitText
	}
	if b.hit&bar != 0 {
		return s.refuseAt(l, ReasonName)
	}
	if b.git.inside && kind != syscall.S_IFREG {
		data := b.git.class == gitTree && a.git.inside && a.git.class == gitTree
		module := b.git.class == gitModules && s.shapeOf(a)
		if kind != syscall.S_IFDIR || !data && !module {
			return s.refuseAt(l, ReasonNode)
		}
	}
	if kind == syscall.S_IFREG {
		if r := s.mayBeFile(l); r < 0 {
			return r
		}
	}
	return s.completes(b, kind == syscall.S_IFREG)
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
	if s.resolved[0].stat < 0 {
		return s.resolved[0].stat
	}
	if s.resolved[0].hit&(hitNames|hitHidden) != 0 {
		return s.refuse(ReasonName)
	}
	bar := uint32(hitNames | hitHidden)
	if kind == syscall.S_IFLNK {
		bar |= hitPrefix | hitDeep
	}
	r := s.newName(1, bar)
	if r == 0 && kind == syscall.S_IFLNK && s.onWay(1) {
		r = s.refuseAt(1, ReasonWay)
	}
	if r == 0 && kind == syscall.S_IFLNK && s.record != 0 && s.resolved[1].inside && s.isOld(&s.resolved[1]) {
		r = s.refuseAt(1, ReasonPlace)
	}
	if r == 0 && s.resolved[1].git.inside && kind != syscall.S_IFREG {
		r = s.refuseAt(1, ReasonNode)
	}
	if r == 0 {
		r = s.mayBeFile(1)
	}
	if r == 0 {
		r = s.completes(&s.resolved[1], kind == syscall.S_IFREG)
	}
	if r < 0 {
		return r
	}
	if s.resolved[0].inside != s.resolved[1].inside || s.outside(0) {
		return -int(syscall.EXDEV)
	}
	s.number("", uint(s.resolved[0].obj))
	b := &s.resolved[1]
	r = sys(syscall.SYS_LINKAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), atFollow)
	if r = s.made(1, r); r == 0 && !s.linkedHereAlone() && (s.judge(0) < 0 || s.resolved[0].hit&(hitNames|hitHidden) != 0) { // it has become an index since
		sys(syscall.SYS_UNLINKAT, uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), 0, 0, 0)
		return s.refuse(ReasonRace)
	}
	return r
}

// linkedHereAlone reports whether what resolved path 0 stands for had no name (O_TMPFILE), and has one now.
//
//go:norace
func (s *State) linkedHereAlone() bool {
	s.literal("")
	return s.resolved[0].st.Nlink == 0 && lstatat(s.resolved[0].obj, &s.num[0], &s.st) == 0 && s.st.Nlink == 1
}
