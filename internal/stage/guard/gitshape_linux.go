package guard

import (
	"syscall"
	"unsafe"
)

// What is a git directory is seen by its shape, anew for each call: no table has to be kept current, and what another sandbox or
// the user's own git makes counts at once. For each directory from the name's own up to the root it lies in, one fstatat asks
// for HEAD; only where there is one, it asks for the rest (setup.c of git, is_git_directory).

// within says how a spot's name lies in a git directory.
type within struct {
	rules  bool  // the name is in a root, and git directories are held
	inside bool  // it is in a git directory, by class
	named  bool  // which is called .git, or lies in one that is
	class  uint8 // see gitLines
	up     uint  // directories from the name's own to the git directory
}

const (
	upLevels = 512
	upName   = 3 * upLevels
	upRoom   = upName + 32
)

// What the names in a directory make of it.
const (
	keyHead = 1 << iota
	keyObjects
	keyRefs
	keyCommon
)

// shaped reports whether a directory with these names is one that git would take for a repository's.
//
//go:norace
func shaped(keys uint) bool {
	return keys&keyHead != 0 && (keys&keyCommon != 0 || keys&(keyObjects|keyRefs) == keyObjects|keyRefs)
}

// shape judges the path in s.m, which is spot sp's, as one in a git directory, and adds to s.m.hit.
//
//go:norace
func (s *State) shape(sp *spot) {
	m := &s.m
	sp.git = within{}
	flags := m.rb(offFlags)
	if flags&flagShape == 0 || m.floor >= m.nc || m.nc >= compRoom {
		m.hit |= m.byGit
		return
	}
	g := &sp.git
	g.rules = true
	for c := m.nc - 1; ; c-- {
		if s.heldAt(sp, c) {
			g.inside = true
			if c >= m.floor+2 && m.isComp(c-2, "worktrees") && s.heldAt(sp, c-2) {
				c -= 2
			}
			g.up = m.nc - 1 - c
			for i := c; i > m.floor && !g.named; i-- {
				g.named = m.dotGit(i - 1)
			}
			g.class = m.gitClass(uint(m.off[c&(compRoom-1)]))
			m.hit = m.withGit(m.gitHit(g.class, flags, uint(m.off[c&(compRoom-1)])))
			return
		}
		if c == m.floor {
			break
		}
	}
	m.hit |= m.byGit
}

// heldAt reports whether the directory of the path's first c components is a git directory. One that cannot be looked into is
// taken for one.
//
//go:norace
func (s *State) heldAt(sp *spot, c uint) bool {
	if c > 0 && s.m.dotGit(c-1) {
		return true
	}
	r := s.lookAt(sp, c, "HEAD")
	switch {
	case r == -eNOENT || r == -int(syscall.ENOTDIR):
		return false
	case r < 0:
		return true
	}
	return s.lookAt(sp, c, "commondir") == 0 || s.lookAt(sp, c, "objects") == 0 && s.lookAt(sp, c, "refs") == 0
}

// lookAt asks for a name in the directory of the path's first c components: 0 or a negative errno.
//
//go:norace
func (s *State) lookAt(sp *spot, c uint, name string) int {
	if up := s.m.nc - 1 - c; sp.obj < 0 && up < upLevels {
		return lstatat(sp.dir, s.above(up, name), &s.st)
	}
	b, n := &s.w.b[0], uint(0)
	if c > 0 {
		for end := uint(s.m.off[c&(compRoom-1)]) - 1; n < end && n < pathMax; n++ {
			b[n] = s.m.path[n&(pathRoom-1)]
		}
	}
	b[n&(2*pathMax-1)] = '/'
	for i := 0; i < len(name) && i < 16; i++ {
		n++
		b[n&(2*pathMax-1)] = name[i]
	}
	b[(n+1)&(2*pathMax-1)] = 0
	return lstatat(s.rootDir, &b[0], &s.st)
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

// keys asks what of a git directory is in dir.
//
//go:norace
func (s *State) keys(dir int) uint {
	keys := uint(0)
	if lstatat(dir, s.above(0, "HEAD"), &s.st) != -eNOENT {
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

// keyOf returns which of these names the spot's is, to a file system that folds case, too.
//
//go:norace
func (sp *spot) keyOf() uint {
	switch {
	case sp.isName("head"):
		return keyHead
	case sp.isName("objects"):
		return keyObjects
	case sp.isName("refs"):
		return keyRefs
	case sp.isName("commondir"):
		return keyCommon
	}
	return 0
}

// isName compares the spot's name with a word of lower case, with case folded.
//
//go:norace
func (sp *spot) isName(word string) bool {
	j := uint(0)
	for i := uint(0); i < 256 && sp.name[i] != 0 && sp.name[i] != '/'; i++ {
		for w := folded(sp.name[i], sp.name[(i+1)&511], sp.name[(i+2)&511]); w != 0; w >>= 8 {
			if j >= uint(len(word)) || byte(w) != word[j] {
				return false
			}
			j++
		}
	}
	return j == uint(len(word))
}

// shapeOf reports whether what the spot names is a directory with the shape of a git directory.
//
//go:norace
func (s *State) shapeOf(sp *spot) bool {
	fd := openat(sp.dir, &sp.name[0], oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if fd < 0 {
		return false
	}
	keys := s.keys(fd)
	closeFD(fd)
	return shaped(keys)
}

// completes decides whether the name that spot sp is to become may make its directory a git directory: only if all that lies
// there already is what a git directory may hold, and the name is made empty. 0, or a negative errno. It is called before the name
// is made.
//
//go:norace
func (s *State) completes(sp *spot, empty bool) int {
	key := sp.keyOf()
	if key == 0 || !sp.git.rules || sp.dir < 0 {
		return 0
	}
	if sp.git.inside && (sp.git.up == 0 || sp.git.class != gitTree && sp.git.class != gitModules) {
		return 0 // all of it was held from the beginning
	}
	if keys := s.keys(sp.dir) | key; !shaped(keys) {
		return 0
	} else if keys&keyCommon != 0 || !empty {
		return s.refuse()
	}
	return s.conforms(sp.dir, true)
}

// completed looks at the directory of spot sp again, once the name that makes it a git directory is there: another sandbox may
// have put something into it between check and act. The name goes again then.
//
//go:norace
func (s *State) completed(sp *spot, flags int) int {
	if sp.keyOf() == 0 || !sp.git.rules || sp.git.inside && sp.git.up == 0 || !shaped(s.keys(sp.dir)) || s.conforms(sp.dir, false) == 0 {
		return 0
	}
	sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), uintptr(flags), 0, 0)
	return -eACCES
}

// heldSince looks once more whether what was opened at spot sp, or made there, lies in a git directory that was none when the call
// was judged: another sandbox, or the user's git, may have completed it between check and act. The path in s.m is that of sp.
//
//go:norace
func (s *State) heldSince(sp *spot) int {
	if !sp.git.rules || sp.git.inside {
		return 0
	}
	if sp.keyOf() != 0 && sp.obj < 0 {
		return s.completed(sp, 0)
	}
	for c := s.m.nc - 1; ; c-- {
		if s.heldAt(sp, c) {
			return s.refuse()
		}
		if c == s.m.floor {
			return 0
		}
	}
}

// ceases decides whether the name of spot sp may go, if without it its directory is a git directory no more: then what else is in
// it would be the tool's to write.
//
//go:norace
func (s *State) ceases(sp *spot) int {
	key := sp.keyOf()
	if key == 0 || !sp.git.inside || sp.git.named || sp.git.up != 0 {
		return 0
	}
	if keys := s.keys(sp.dir); !shaped(keys) || shaped(keys&^key) {
		return 0
	}
	return s.conforms(sp.dir, false)
}
