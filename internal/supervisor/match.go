package supervisor

import "github.com/holdfast-dev/holdfast/internal/protected"

// The code in this file runs in the forked child as well: see the rules above Serve. It touches no memory
// but the matcher's own, calls nothing of the runtime, and masks or checks every index.

// What a path has to do with the rules: the bits of matcher.hit.
const (
	hitWhole  = 1 << iota // a Whole name, or something beneath one
	hitConfig             // a GitConfig file
	hitGitFile
	hitCommon
	hitHidden // a hidden name, or something beneath one
	hitPrefix // an ancestor of a protected or hidden name: what is renamed or linked here brings that name along
	hitDeep   // as hitPrefix, inside the "**" of a pattern
	hitSelf   // the supervisor's own /proc directory
	hitLost   // a directory whose path cannot be told
	hitPlace  // an Unread path, something beneath one, or a Free path in what is held: it stays in its place
	hitFree   // a Free path, or something beneath one, whatever rules are around it
	hitLock   // the lock of a file that is replaced by checked copies
	hitText   // a text of a git directory that is checked before it stands
	hitLoose  // with hitWhole: it may be removed
	hitFixed  // a directory of a git directory whose mode stays

	hitModules // with hitConfig: it is a .gitmodules
)

const hitNames = hitWhole | hitConfig | hitGitFile | hitCommon | hitSelf | hitLost | hitLock | hitText

const (
	pathRoom = 8192
	compRoom = 8192
	longRoom = 1 << 17 // of a canonical path, which lies in the lower half
	longMax  = longRoom/2 - 1024
)

// matcher holds one canonical path and compares it with the rules.
type matcher struct {
	rules []byte
	path  [longRoom]byte
	n     uint             // length of path
	off   [compRoom]uint16 // where each component begins; one more for the end
	nc    uint             // number of components
	floor uint             // components of the outermost root above path; a match must end below it
	fold  bool
	short bool // there is a "~" in the path: see shortFor
	hit   uint32

	granted bool          // a root, the run's own directory, a Free path, or something in one
	own     [ownRoom]byte // the path of the run's own directory
	ownSize uint

	byGit  uint32 // as hit, of the names below .git: they count where no git directory is found by its shape
	byName uint32 // as hit, of the names that are free in a directory that the tool has made (kindFree)
	base   uint   // components of the outermost directory in which one of those begins
	ended  uint   // components of the path to the end of the name that was compared last,
	whole  uint   // and to that of the outermost one in byName; ^0: byName has no whole name
	pat    uint   // cursor in rules
}

//go:norace
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

//go:norace
func (m *matcher) rb(i uint) byte {
	if i < uint(len(m.rules)) {
		return m.rules[i]
	}
	if i -= dotGitAt; i < uint(len(dotGitWord)) {
		return dotGitWord[i]
	}
	return 0
}

// dotGitWord stands behind the rules for what compares with bytes of theirs.
const (
	dotGitWord = ".git"
	dotGitAt   = 1 << 40
)

//go:norace
func (m *matcher) r16(i uint) uint { return uint(m.rb(i)) | uint(m.rb(i+1))<<8 }

//go:norace
func (m *matcher) r32(i uint) uint { return m.r16(i) | m.r16(i+2)<<16 }

// judge sets hit for the path in m: 0 when no rule speaks of it. The path must be canonical and absolute.
//
//go:norace
func (m *matcher) judge() {
	m.hit, m.byGit, m.byName, m.base, m.whole = 0, 0, 0, ^uint(0), ^uint(0)
	m.split()
	m.pat = offRecords
	m.roots()
	names, all, tails := m.pat, m.r16(offNames), m.r16(offTails)
	for i := uint(0); i < m.nc && m.floor < m.nc; i++ {
		c := m.path[uint(m.off[i&(compRoom-1)])&(longRoom-1)]
		if m.short || m.rb(offBitmap+uint(c>>3))&(1<<(c&7)) != 0 {
			m.pat = names
			m.namesAt(i, all)
		} else if tails > 0 {
			m.pat = m.r32(offTailsAt)
			m.namesAt(i, tails)
		}
	}
	m.pat = m.r32(offPathsAt)
	m.places()
}

// split finds the components of the path.
//
//go:norace
func (m *matcher) split() {
	nc := uint(0)
	m.short = false
	for i := uint(0); i < m.n; i++ {
		switch c := m.path[i&(longRoom-1)]; {
		case c == '/' && i+1 < m.n:
			m.off[nc&(compRoom-1)] = uint16(i + 1)
			nc++
		case c == '~':
			m.short = true
		}
	}
	m.off[nc&(compRoom-1)] = uint16(m.n + 1)
	m.nc = nc
}

// goneTail stands behind the path of what has lost its name (d_path in fs/d_path.c).
const goneTail = " (deleted)"

// gone reports whether the first n bytes of the path say that.
//
//go:norace
func (m *matcher) gone(n uint) bool {
	const size = uint(len(goneTail))
	for i := uint(0); i < size && n > size; i++ {
		if m.path[(n-size+i)&(longRoom-1)] != goneTail[i] {
			return false
		}
	}
	return n > size
}

// roots sets floor and fold, and moves pat to the names.
//
//go:norace
func (m *matcher) roots() {
	m.floor, m.fold, m.granted = ^uint(0), false, m.inOwn()
	for n := m.r16(offRoots); n > 0; n-- {
		size := m.r16(m.pat + 1)
		under := m.under(m.pat+3, size)
		m.granted = m.granted || under
		if under && m.n > size {
			comps := uint(0)
			for i := uint(0); i < size; i++ {
				if m.rb(m.pat+3+i) == '/' {
					comps++
				}
			}
			if comps < m.floor {
				m.floor = comps
			}
			m.fold = m.fold || m.rb(m.pat)&1 != 0
		}
		m.pat += 3 + size
	}
}

// under reports whether the path is, or lies beneath, the size bytes of the rules at p.
//
//go:norace
func (m *matcher) under(p, size uint) bool {
	if size > m.n || (size < m.n && m.path[size&(longRoom-1)] != '/') {
		return false
	}
	for i := size; i > 0; i-- { // from the end: roots often begin alike
		if m.rb(p+i-1) != m.path[(i-1)&(longRoom-1)] {
			return false
		}
	}
	return true
}

// full notes a complete match of a name of this kind; exact means that nothing follows it in the path.
//
//go:norace
func (m *matcher) full(kind byte, exact bool) {
	switch {
	case kind == kindHidden:
		m.hit |= hitHidden
	case kind == byte(protected.Whole), kind == byte(protected.Ever):
		m.hit |= hitWhole
	case !exact:
	case kind == byte(protected.GitConfig):
		m.hit |= hitConfig
	case kind == byte(protected.GitModules):
		m.hit |= hitConfig | hitModules
	case kind == byte(protected.Lock):
		m.hit |= hitLock
	case kind == byte(protected.GitFile):
		m.hit |= hitGitFile
	case kind == byte(protected.CommonDir):
		m.hit |= hitCommon
	}
}

// namesAt compares n name records, from pat on, with the path from component i on.
//
//go:norace
func (m *matcher) namesAt(i, n uint) {
	first := m.path[uint(m.off[i&(compRoom-1)])&(longRoom-1)]
	for ; n > 0; n-- {
		if c := m.rb(m.pat + 6); first < 0x80 && c < 0x80 && lower(first) != lower(c) && !m.short && m.rb(m.pat+4) != compSuffix {
			m.pat += 4 + m.r16(m.pat+2) // most names, at the cost of a byte
			continue
		}
		before := m.hit
		m.hit = 0
		m.nameAt(i)
		switch kind := m.rb(m.pat); {
		case m.hit == 0:
		case kind&kindGit != 0:
			m.byGit |= m.hit
			m.hit = 0
		case kind&kindFree != 0:
			m.byName |= m.hit
			if m.base = min(m.base, i); m.hit&hitWhole != 0 {
				m.whole = min(m.whole, m.ended)
			}
			m.hit = 0
		}
		m.hit |= before
		m.pat += 4 + m.r16(m.pat+2)
	}
}

// nameAt compares the name record at pat with the components from i on.
//
//go:norace
func (m *matcher) nameAt(i uint) {
	p, left := m.pat+4, uint(m.rb(m.pat+1))
	for ; left > 0; left-- {
		if i >= m.nc {
			m.hit |= hitPrefix
			return
		}
		if m.rb(p) == compDeep {
			m.deep(i, p+2, left-1)
			return
		}
		if !m.same(i, p) {
			return
		}
		p += 2 + uint(m.rb(p+1))
		i++
	}
	if m.ended = i; i > m.floor {
		m.full(m.rb(m.pat)&^(kindGit|kindFree), i == m.nc)
	}
}

// deep matches the rest of a name (left components at p) after a "**" that takes component i and any more.
//
//go:norace
func (m *matcher) deep(i, p, left uint) {
	m.hit |= hitDeep
	for i++; i < m.nc; i++ {
		q, j, l := p, i, left
		for ; l > 0 && j < m.nc && m.same(j, q); l-- {
			q += 2 + uint(m.rb(q+1))
			j++
		}
		if l == 0 && j > m.floor {
			m.ended = j
			m.full(m.rb(m.pat)&^(kindGit|kindFree), j == m.nc)
		}
	}
}

// same reports whether path component i is what the name's component at p asks for.
//
//go:norace
func (m *matcher) same(i, p uint) bool {
	mode, size := m.rb(p), uint(m.rb(p+1))
	if mode == compAny {
		return true
	}
	at, end := uint(m.off[i&(compRoom-1)]), uint(m.off[(i+1)&(compRoom-1)])-1
	if m.fold {
		return m.sameFolded(at, end, p+2, p+2+size, mode)
	}
	if end-at < size || mode == compLiteral && end-at != size {
		return false
	}
	if mode == compSuffix {
		at = end - size
	}
	for j := uint(0); j < size; j++ {
		if m.path[(at+j)&(longRoom-1)] != m.rb(p+2+j) {
			return false
		}
	}
	return true
}

// folded returns the ASCII letters that byte c, with the two behind it, means to a file system
// that folds case, the first in the lowest byte; 0 if it means none. ext4 and f2fs fold by
// Unicode's NFDICF: U+212A is k, U+017F is s, a ligature is its letters (CaseFolding.txt, C
// and F), and the ignorable code points vanish. Every other non-ASCII character is taken to
// vanish too, which can only protect more: none folds to ASCII alone.
//
//go:norace
func folded(c, d, e byte) uint32 {
	if c < 0x80 {
		return uint32(lower(c))
	}
	switch {
	case c == 0xe2 && d == 0x84 && e == 0xaa:
		return 'k'
	case c == 0xc5 && d == 0xbf:
		return 's'
	case c == 0xc3 && d == 0x9f, c == 0xe1 && d == 0xba && e == 0x9e: // sharp s, small and capital
		return 's' | 's'<<8
	case c == 0xef && d == 0xac:
		return ligature(e)
	}
	return 0
}

// ligature returns the letters of U+FB00 to U+FB06, by the last byte of their UTF-8.
//
//go:norace
func ligature(e byte) uint32 {
	switch e {
	case 0x80:
		return 'f' | 'f'<<8
	case 0x81:
		return 'f' | 'i'<<8
	case 0x82:
		return 'f' | 'l'<<8
	case 0x83:
		return 'f' | 'f'<<8 | 'i'<<16
	case 0x84:
		return 'f' | 'f'<<8 | 'l'<<16
	case 0x85, 0x86:
		return 's' | 't'<<8
	}
	return 0
}
