package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// replaceChecked carries out a rename onto a git configuration, or onto another text that counts, which is how git writes
// one. The tool may still hold the source open, so its content could change after any check: a copy of the checked bytes, in a file
// that no process of any sandbox can open, takes the target's name; then the source goes. It returns 0 or a negative errno.
//
//go:norace
func (s *State) replaceChecked() int {
	a, b := &s.resolved[0], &s.resolved[1]
	if s.typeOf(0) != syscall.S_IFREG || s.lockedByOther(b) {
		return s.refuseAt(1, ReasonLock)
	}
	if a.hit&hitLock != 0 && (s.ownLock(0) < 0 || !s.locksName(a, b)) {
		return s.refuseAt(1, ReasonLock)
	}
	r := s.load(0, a.dir, &a.name[0])
	if r == 0 && b.hit&hitConfig != 0 {
		r = s.mayConfigure(b)
	} else if r == 0 && !s.harmlessText(b) {
		r = s.refuseAt(1, ReasonText)
	}
	if r == 0 {
		r = s.storeCopy(b.dir, s.modeFor(b, a.st.Mode))
	}
	if r == 0 {
		r = s.renameCopy(b.dir, &b.name[0])
	}
	if r < 0 {
		return r
	}
	if i := s.ownLock(0); i >= 0 {
		s.locks[i&(lockRoom-1)].forget()
	}
	sys(syscall.SYS_UNLINKAT, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), 0, 0, 0)
	return 0
}

// mayConfigure compares text 0 with the configuration that it is to replace.
//
//go:norace
func (s *State) mayConfigure(b *resolvedPath) int {
	s.locateTexts(b)
	s.text[1].N = 0
	if r := s.load(1, b.dir, &b.name[0]); r < 0 && r != -eNOENT {
		return r
	}
	s.text[0].DropWorktree(&s.text[1])
	same := s.sameForeign()
	if !same && b.hit&hitModules == 0 && s.text[0].IsKey("extensions", "worktreeconfig") {
		return s.refuseAt(1, ReasonSecondConfig)
	}
	if !same || b.hit&hitModules == 0 && !s.keepsIDs(b.dir, &s.text[1], &s.text[0]) {
		return s.refuseAt(1, ReasonConfig)
	}
	return 0
}

// plainConfig reports whether the configuration at sp holds harmless lines alone, and so may be removed. An index that would be read
// otherwise without it goes first.
//
//go:norace
func (s *State) plainConfig(sp *resolvedPath) bool {
	s.locateTexts(sp)
	s.text[1].N = 0
	s.text[0].Removing = true
	r := s.load(0, sp.dir, &sp.name[0]) == 0 && s.sameForeign()
	s.text[0].Removing = false
	if r && sp.hit&hitModules == 0 && !s.keepsIDs(sp.dir, &s.text[0], &s.text[1]) {
		s.literal("index")
		sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&s.num[0])), 0, 0, 0)
		r = s.keepsIDs(sp.dir, &s.text[0], &s.text[1])
	}
	return r
}

// place tells the texts where their configuration stands: whether it is a submodule's, and what the directory is from which
// relative paths of its repository count.
//
//go:norace
func (s *State) locateTexts(sp *resolvedPath) {
	modules, base := false, -1
	if sp.hit&hitModules == 0 && s.canonical(sp.dir) > 0 {
		s.m.split()
		for i := s.m.nc; i > 0; i-- {
			modules = modules || s.m.isComp(i-1, "modules")
		}
		if s.m.nc > 0 && s.m.dotGit(s.m.nc-1) {
			base = sp.dir
		}
	}
	s.setTexts(modules, sp.hit&hitModules != 0, base)
}

// setTexts says of both texts whether they are a submodule's configuration or a .gitmodules. base is the descriptor of the .git directory
// beside which relative paths of repositories begin, or -1.
//
//go:norace
func (s *State) setTexts(modules, workTree bool, base int) {
	s.textBase = base
	for i := range s.text {
		s.text[i].Modules, s.text[i].WorkTree = modules, workTree
	}
}

// sameForeign reports whether the lines of text 0 that are not harmless are those of text 1, one by one and in their sections.
//
//go:norace
func (s *State) sameForeign() bool {
	a, b := &s.text[0], &s.text[1]
	a.Rewind()
	b.Rewind()
	for {
		more := s.nextForeign(a)
		if more != s.nextForeign(b) {
			return false
		}
		if !more {
			return true
		}
		if !gittext.SameLine(a, b) {
			return false
		}
	}
}

// nextForeign moves to the next line that is not harmless; false at the end.
//
//go:norace
func (s *State) nextForeign(t *gittext.Text) bool {
	for t.Next() {
		switch t.Judge() {
		case gittext.Foreign:
			return true
		case gittext.IfDirectory:
			if !s.isPlainDir(t) {
				return true
			}
		}
	}
	return false
}

// store writes text 0 to fd.
//
//go:norace
func (s *State) store(fd int) int {
	t := &s.text[0]
	for done := uint(0); done < t.N; {
		r := sys(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&t.B[done&(gittext.Room-1)])), uintptr(t.N-done), 0, 0)
		if r < 0 {
			return r
		}
		done += uint(r)
	}
	return 0
}
