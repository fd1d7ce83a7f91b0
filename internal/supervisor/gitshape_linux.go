package supervisor

import (
	"syscall"
	"unsafe"
)

// What is a git directory is seen by its shape, anew for each call: no table has to be kept current, and what another sandbox or
// the user's own git makes counts at once. For each directory from the name's own up to the root it lies in, one fstatat asks
// for HEAD; only where there is one, it asks for the rest (setup.c of git, is_git_directory). The kernel walks each "../" of a
// path, so after climbStep of them a directory is opened, and the next paths begin there: the time grows with the depth, and not
// with its square.

// shaped reports whether a directory with these names is one that git would take for a repository's.
//
//go:norace
func shaped(keys uint) bool {
	return keys&keyHead != 0 && (keys&keyCommon != 0 || keys&(keyObjects|keyRefs) == keyObjects|keyRefs)
}

// shape judges the path in s.m, which is resolved path sp's, as one in a git directory, and adds to s.m.hit; with later set only if that
// cannot wait.
//
//go:norace
func (s *State) shape(sp *resolvedPath, later bool) {
	m := &s.m
	sp.git = within{}
	flags := m.rb(offFlags)
	if flags&flagShape == 0 || m.floor >= m.nc || m.nc >= compRoom {
		m.hit |= m.byGit
		return
	}
	sp.git.rules = true
	if sp.git.later = later && s.canWait(sp); sp.git.later {
		return
	}
	if c, held := s.heldAbove(sp); held {
		s.judgeInside(sp, c)
		return
	}
	m.hit |= m.byGit
}

// canWait reports whether the directories above resolved path sp's name need to be looked at only after the act: it is a plain file that
// is opened for writing, which by itself changes nothing, and no name in its path is protected. So one look is enough.
//
//go:norace
func (s *State) canWait(sp *resolvedPath) bool {
	const how = syscall.O_EXCL | syscall.O_DIRECTORY | oTmpfileBit | oPath
	if s.op != opOpen || s.flags&how != 0 || s.flags&(syscall.O_WRONLY|syscall.O_RDWR) == 0 || s.m.hit|s.m.byGit != 0 {
		return false
	}
	if sp.obj >= 0 || sp.stat != 0 || sp.st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return false
	}
	for i := s.m.nc; i > s.m.floor; i-- {
		if s.m.dotGit(i - 1) {
			return false
		}
	}
	return true
}

// openFirst opens such a file, looks, and gives the tool the descriptor; isJudged says that the call has to be carried out by its
// rules, which are known by then.
//
//go:norace
func (s *State) openFirst() int {
	const after = syscall.O_CREAT | syscall.O_TRUNC
	sp := &s.resolved[0]
	fd := s.openChecked(s.flags&^after, 0)
	sp.git.later = false
	s.shape(sp, false)
	sp.hit = s.m.hit
	if fd < 0 || fd >= isTerminal || sp.hit != 0 || sp.git.inside {
		if fd < isTerminal {
			closeFD(fd)
		}
		return isJudged
	}
	if s.flags&syscall.O_TRUNC != 0 {
		if r := sys(syscall.SYS_FTRUNCATE, uintptr(fd), 0, 0, 0, 0); r < 0 {
			closeFD(fd)
			return r
		}
	}
	return s.give(s.req.id, fd, s.flags)
}

// heldAbove looks for the innermost git directory that resolved path sp's name lies in, and returns how many components of the path lead
// to it. Of a linked worktree's directory it is the repository's.
//
//go:norace
func (s *State) heldAbove(sp *resolvedPath) (c uint, held bool) {
	m, k := &s.m, &s.climb
	k.fd, k.own, k.at = -1, false, m.nc-1
	if sp.obj < 0 {
		k.fd = sp.dir
	}
	for c = m.nc - 1; ; c-- {
		if held = s.heldAt(c); held {
			for up := uint(2); up > 0; up-- { // worktrees/NAME, or worktrees with directories HEAD, objects and refs
				if c >= m.floor+up && m.sameWord(c-up, "worktrees") && s.heldAt(c-up) {
					c -= up
					break
				}
			}
			break
		}
		if c == m.floor {
			break
		}
	}
	k.leave()
	return c, held
}

// judgeInside judges the path in s.m as one in the git directory of its first c components.
//
//go:norace
func (s *State) judgeInside(sp *resolvedPath, c uint) {
	m, g := &s.m, &sp.git
	g.inside, g.up = true, m.nc-1-c
	for i := c; i > m.floor && !g.named; i-- {
		g.named = m.dotGit(i - 1)
	}
	at := uint(m.off[c&(compRoom-1)])
	g.at = uint16(at)
	g.class = m.gitClass(at)
	g.top = g.class == gitModules && (g.up == 1 || g.up == 3 && m.begins(at, "worktrees/"))
	m.hit = m.withGit(m.gitHit(g.class, m.rb(offFlags), at))
}

// heldAt reports whether the directory of the path's first c components is a git directory. One that cannot be looked into is
// taken for one.
//
//go:norace
func (s *State) heldAt(c uint) bool {
	if c > 0 && s.m.dotGit(c-1) {
		return true
	}
	r := s.climbTo(c)
	if r == 0 {
		r = s.lookAt(c, "HEAD")
	}
	switch {
	case r == -eNOENT || r == -int(syscall.ENOTDIR):
		return false
	case r < 0:
		return true
	case !s.readable():
		return false
	}
	return s.lookAt(c, "commondir") == 0 || s.lookAt(c, "objects") == 0 && s.lookAt(c, "refs") == 0
}

// climbTo makes s.climb a directory from which that of the path's first c components is at most climbStep levels up: 0 or a
// negative errno. An object without a name is begun at by its directory's path.
//
//go:norace
func (s *State) climbTo(c uint) int {
	k := &s.climb
	if k.fd < 0 {
		fd := s.openAbove(c)
		if fd < 0 {
			return fd
		}
		k.fd, k.own, k.at = fd, true, c
	}
	for k.at > c+climbStep {
		fd := openat(k.fd, s.above(climbStep, "."), oPath|syscall.O_DIRECTORY, 0)
		if fd < 0 {
			return fd
		}
		k.leave()
		k.fd, k.own, k.at = fd, true, k.at-climbStep
	}
	return 0
}

//go:norace
func (k *climb) leave() {
	if k.own {
		closeFD(k.fd)
	}
	k.own = false
}

// openAbove opens the directory of the path's first c components by that path, as much of it at a time as the kernel takes.
//
//go:norace
func (s *State) openAbove(c uint) int {
	b, end, at := &s.w.b[0], uint(0), uint(1)
	if c > 0 {
		end = uint(s.m.off[c&(compRoom-1)]) - 1
	}
	b[0], b[1] = '.', 0
	fd := s.openNoLinks(s.rootDir, &b[0], syscall.O_DIRECTORY)
	for at < end && fd >= 0 {
		stop := at
		for i := at; i < end && i-at < pathMax-2; i++ {
			b[(i-at)&(2*pathMax-1)] = s.m.path[i&(longRoom-1)]
			if i+1 == end || s.m.path[(i+1)&(longRoom-1)] == '/' {
				stop = i + 1
			}
		}
		b[(stop-at)&(2*pathMax-1)] = 0
		next := s.openNoLinks(fd, &b[0], syscall.O_DIRECTORY)
		closeFD(fd)
		fd, at = next, stop+1
	}
	return fd
}

// lookAt asks for a name in the directory of the path's first c components, to which climbTo has gone: 0 or a negative errno.
//
//go:norace
func (s *State) lookAt(c uint, name string) int {
	return lstatat(s.climb.fd, s.above(s.climb.at-c, name), &s.st)
}

// readable reports whether what s.st tells of can be read as a HEAD: git reads it whatever it is (validate_headref in path.c).
//
//go:norace
func (s *State) readable() bool {
	kind := s.st.Mode & syscall.S_IFMT
	return kind != syscall.S_IFDIR && kind != syscall.S_IFSOCK
}

// keys asks what of a git directory is in dir.
//
//go:norace
func (s *State) keys(dir int) uint {
	keys := uint(0)
	if r := lstatat(dir, s.above(0, "HEAD"), &s.st); r != -eNOENT && (r < 0 || s.readable()) {
		keys = keyHead
	}
	if lstatat(dir, s.above(0, "objects"), &s.st) != -eNOENT {
		keys |= keyObjects
	}
	if lstatat(dir, s.above(0, "refs"), &s.st) != -eNOENT {
		keys |= keyRefs
	}
	if lstatat(dir, s.above(0, "commondir"), &s.st) != -eNOENT {
		keys |= keyCommon
	}
	return keys
}

// shapeOf reports whether what the resolved path names is a directory with the shape of a git directory.
//
//go:norace
func (s *State) shapeOf(sp *resolvedPath) bool {
	fd := openat(sp.dir, &sp.name[0], oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if fd < 0 {
		return false
	}
	keys := s.keys(fd)
	closeFD(fd)
	return shaped(keys)
}

//go:norace
func (s *State) noNewGit() bool { return s.m.rb(offFlags)&flagNoNewGit != 0 }

// completes decides whether the name that resolved path sp is to become may make its directory a git directory: only if all that lies
// there already is what a git directory may hold, and the name is made empty. 0, or a negative errno. It is called before the name
// is made.
//
//go:norace
func (s *State) completes(sp *resolvedPath, empty bool) int {
	key := sp.keyOf()
	if key == 0 || !sp.git.rules || sp.dir < 0 {
		return 0
	}
	if sp.git.inside && !sp.git.loose() {
		return 0 // all of it was held from the beginning
	}
	if keys := s.keys(sp.dir) | key; !shaped(keys) {
		return 0
	} else if keys&keyCommon != 0 || !empty || s.noNewGit() || sp.git.top {
		return s.refuseAt(s.sideOf(sp), ReasonNewGit)
	}
	if r := s.conforms(sp.dir, true); r < 0 {
		return s.refuseAt(s.sideOf(sp), ReasonComplete)
	}
	return 0
}

// completed looks at the directory of resolved path sp again, once the name that makes it a git directory is there: another sandbox may
// have put something into it between check and act, and the name goes again then; or may have opened the configuration, which becomes
// another copy.
//
//go:norace
func (s *State) completed(sp *resolvedPath, flags int) int {
	if sp.keyOf() == 0 || !sp.git.rules || sp.git.inside && !sp.git.loose() || !shaped(s.keys(sp.dir)) {
		return 0
	}
	if !sp.git.top && s.conforms(sp.dir, true) == 0 {
		return 0
	}
	sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(flags), 0, 0)
	return s.refuse(ReasonRace)
}

// heldSince looks once more whether what was opened at resolved path sp, or made there, lies in a git directory that was none when the call
// was judged: another sandbox, or the user's git, may have completed it between check and act. The path in s.m is that of sp.
//
//go:norace
func (s *State) heldSince(sp *resolvedPath) int {
	if !sp.git.rules || sp.git.inside && !sp.git.loose() {
		return 0
	}
	if sp.keyOf() != 0 && sp.obj < 0 {
		return s.completed(sp, 0)
	}
	if c, held := s.heldAbove(sp); held && !(sp.git.inside && s.m.nc-1-c == sp.git.up) {
		return s.refuse(ReasonRace)
	}
	return 0
}

// ceases decides whether the name of resolved path sp may go, if without it its directory is a git directory no more: then what else is in
// it would be the tool's to write.
//
//go:norace
func (s *State) ceases(sp *resolvedPath) int {
	key := sp.keyOf()
	if key == 0 || !sp.git.inside || sp.git.named || sp.git.up != 0 {
		return 0
	}
	if keys := s.keys(sp.dir); !shaped(keys) || shaped(keys&^key) {
		return 0
	}
	s.literal("index") // it may be removed anyhow, as rm -r will; what could be written in it from here on would be checked no more
	sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&s.num[0])), 0, 0, 0)
	if r := s.conforms(sp.dir, false); r < 0 {
		return s.refuseAt(s.sideOf(sp), ReasonCease)
	}
	return 0
}

// mayBeFile refuses a file at a name of a git directory where only a directory may stand.
//
//go:norace
func (s *State) mayBeFile(k int) int {
	if g := &s.resolved[k&1].git; g.inside && (g.class == gitDir || g.class == gitFixed) {
		return s.refuseAt(k, ReasonNode)
	}
	return 0
}
