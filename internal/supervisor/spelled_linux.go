package supervisor

import (
	"syscall"
	"unsafe"
)

// How the paths are written that deferred writes say.

// spellGitFile makes the .git file in l one of these texts, of the n bytes of the path in s.m, which is judged; false if it can be none.
//
//go:norace
func (s *State) spellGitFile(l *deferredWrite, at, n uint, absolute bool) bool {
	m := &s.m
	fixed := m.floor < m.nc && m.dotGit(m.floor)
	for i := uint(0); i < m.floor && i < m.nc && !fixed; i++ {
		fixed = m.dotGit(i) // the root lies in a git directory
	}
	if absolute && fixed {
		return s.spell(l, at, n, true)
	}
	from, ups, fine := s.common(l, n)
	if !fine || from >= n || m.floor >= m.nc || from+1 < uint(m.off[m.floor&(compRoom-1)]) {
		return false
	}
	first := m.floor
	for first < m.nc && uint(m.off[first&(compRoom-1)]) != from+1 {
		first++
	}
	if first >= m.nc || !m.dotGit(first) && (ups > 1 || first+1 < m.nc && !m.dotGit(first+1) && !m.ofLinked(first+1)) {
		return false
	}
	return s.spell(l, at, n, false)
}

// ofLinked reports whether component i of the path is where a git directory has those of linked worktrees or submodules.
//
//go:norace
func (m *matcher) ofLinked(i uint) bool {
	return m.sameWord(i, "worktrees") || m.sameWord(i, "modules")
}

// sameWord compares component i of the path with a word of small letters; where case folds, what is not ASCII may be anything.
//
//go:norace
func (m *matcher) sameWord(i uint, word string) bool {
	if !m.fold {
		return m.isComp(i, word)
	}
	at, end := uint(m.off[i&(compRoom-1)]), uint(m.off[(i+1)&(compRoom-1)])-1
	for j := at; j < end; j++ {
		if m.path[j&(longRoom-1)] >= 0x80 {
			return true
		}
	}
	if end-at != uint(len(word)) {
		return false
	}
	for j := uint(0); j < uint(len(word)); j++ {
		if lower(m.path[(at+j)&(longRoom-1)]) != word[j] {
			return false
		}
	}
	return true
}

// spell replaces what the deferred write says from byte at on by the n bytes of the canonical path in s.m.path, as a path
// relative to the deferred write's directory unless absolute is set. The tool's own spelling may lead elsewhere later: by a ".." behind
// a name that becomes a link. path[0] is free, since deferred writes are read before a call's path is.
//
//go:norace
func (s *State) spell(l *deferredWrite, at, n uint, absolute bool) bool {
	from := uint(0)
	if !absolute {
		same, ups, fine := s.common(l, n)
		if !fine || same+1 >= n {
			return false // the directory itself, or one above it
		}
		for ; ups > 0; ups-- {
			at = l.add(l.add(l.add(at, '.'), '.'), '/')
		}
		from = same + 1 // the slash
	}
	for i := from; i < n; i++ {
		c := s.m.path[i&(longRoom-1)]
		if c < ' ' || c == 0x7f {
			return false
		}
		at = l.add(at, c)
	}
	l.n = l.add(at, '\n')
	return l.n < deferredBytes
}

// common returns what the path of n bytes in s.m.path and that of the deferred write's directory begin with, up to and without a slash, and
// how many directories the latter lies below that.
//
//go:norace
func (s *State) common(l *deferredWrite, n uint) (from, ups uint, fine bool) {
	s.number("", uint(l.dir))
	r := sys(syscall.SYS_READLINKAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.path[0][0])), pathMax, 0)
	if r <= 0 || r >= pathMax || s.path[0][0] != '/' {
		return 0, 0, false
	}
	base := uint(r)
	if base == 1 {
		base = 0 // the root
	}
	same := uint(0)
	for same < base && same < n && s.path[0][same&(pathRoom-1)] == s.m.path[same&(longRoom-1)] {
		same++
		if (same == base || s.path[0][same&(pathRoom-1)] == '/') && (same == n || s.m.path[same&(longRoom-1)] == '/') {
			from = same
		}
	}
	for i := from; i < base; i++ {
		if s.path[0][i&(pathRoom-1)] == '/' {
			ups++
		}
	}
	return from, ups, true
}

// add puts c at byte at of the deferred write, and returns the next place.
//
//go:norace
func (l *deferredWrite) add(at uint, c byte) uint {
	if at >= deferredBytes {
		return deferredBytes
	}
	l.b[at&(deferredBytes-1)] = c
	return at + 1
}
