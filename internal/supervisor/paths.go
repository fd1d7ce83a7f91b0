package supervisor

import "github.com/holdfast-dev/holdfast/internal/protected"

// The code in this file runs in the forked child as well: see the rules above Serve.

// Rules.Paths: what stands at an absolute path, inside a root or not. A path is compared folded, since a directory may
// fold case (see Rules.Roots); the path that takes a rule back is compared as it is.

// How a path stands to a record.
const (
	isApart = iota
	isAt
	isBelow
	isAbove // an ancestor
)

// places compares the path with the absolute records, which come with what is around before what is in it: of two that
// hold a path the later one decides. A directory on the way from a hidden one to what is shown in it is not hidden.
//
//go:norace
func (m *matcher) places() {
	hit, onWay, itself, held := uint32(0), false, false, false
	for n := m.r16(offPaths); n > 0; n-- {
		kind, size := m.rb(m.pat), m.r16(m.pat+1)
		switch m.stands(m.pat+3, size, kind != byte(protected.Free)) {
		case isAt:
			held = hit&(hitWhole|hitHidden) != 0 // the directory around it is
			hit, itself = m.place(kind, hit, true), true
		case isBelow:
			hit, itself = m.place(kind, hit, false), false
		case isAbove:
			onWay = onWay || kind != byte(protected.Unread) && hit == hitHidden && !itself
			if kind != byte(protected.Free) {
				m.hit |= hitPrefix
			}
		}
		m.pat += 3 + size
	}
	if onWay && hit == hitHidden {
		hit = 0
	}
	if hit == hitHidden || hit == hitFree && itself && held {
		hit |= hitPlace
	}
	m.hit |= hit
	m.granted = m.granted || hit&hitFree != 0
}

// place returns the hit of the path with a record of this kind that holds it.
//
//go:norace
func (m *matcher) place(kind byte, hit uint32, exact bool) uint32 {
	switch kind {
	case byte(protected.Whole):
		return hitWhole
	case byte(protected.Unread):
		return hitHidden
	case byte(protected.Free):
		return hitFree
	}
	m.full(kind, exact)
	return hit
}

// stands says how the path stands to the size bytes of the rules at p.
//
//go:norace
func (m *matcher) stands(p, size uint, fold bool) int {
	i, j := uint(0), uint(0)
	for i < m.n && j < size {
		c, d := m.path[i&(longRoom-1)], m.rb(p+j)
		switch {
		case c == d:
			i, j = i+1, j+1
		case !fold:
			return isApart
		case c < 0x80:
			if lower(c) != lower(d) {
				return isApart
			}
			i, j = i+1, j+1
		default:
			letters := folded(c, m.path[(i+1)&(longRoom-1)], m.path[(i+2)&(longRoom-1)])
			skip := m.ignorable(i)
			if letters == 0 && skip == 0 {
				return isApart
			}
			for ; letters != 0; letters >>= 8 {
				if j >= size || byte(letters) != lower(m.rb(p+j)) {
					return isApart
				}
				j++
				skip = charSize(c)
			}
			i += skip
		}
	}
	for fold && i < m.n && m.ignorable(i) > 0 {
		i += m.ignorable(i)
	}
	switch {
	case j < size && m.rb(p+j) == '/':
		return isAbove
	case j < size:
		return isApart
	case i >= m.n:
		return isAt
	case m.path[i&(longRoom-1)] == '/':
		return isBelow
	}
	return isApart
}

// charSize returns the length of the character of UTF-8 that begins with c.
//
//go:norace
func charSize(c byte) uint {
	switch {
	case c >= 0xf0:
		return 4
	case c >= 0xe0:
		return 3
	}
	return 2
}

// ignorable returns the length of the character at byte i of the path if it vanishes where case is folded, and
// else 0: Default_Ignorable_Code_Point of Unicode, DerivedCoreProperties.txt.
//
//go:norace
func (m *matcher) ignorable(i uint) uint {
	c, d, e := m.path[i&(longRoom-1)], m.path[(i+1)&(longRoom-1)], m.path[(i+2)&(longRoom-1)]
	f := m.path[(i+3)&(longRoom-1)]
	yes := false
	switch c {
	case 0xc2:
		yes = d == 0xad
	case 0xcd:
		yes = d == 0x8f
	case 0xd8:
		yes = d == 0x9c
	case 0xe1:
		yes = d == 0x85 && (e == 0x9f || e == 0xa0) || d == 0x9e && (e == 0xb4 || e == 0xb5) || d == 0xa0 && e >= 0x8b && e <= 0x8f
	case 0xe2:
		yes = d == 0x80 && (e >= 0x8b && e <= 0x8f || e >= 0xaa && e <= 0xae) || d == 0x81 && e >= 0xa0 && e <= 0xaf
	case 0xe3:
		yes = d == 0x85 && e == 0xa4
	case 0xef:
		yes = d == 0xb8 && e <= 0x8f || d == 0xbb && e == 0xbf || d == 0xbe && e == 0xa0 || d == 0xbf && e >= 0xb0 && e <= 0xb8
	case 0xf0:
		yes = d == 0x9b && e == 0xb2 && f >= 0xa0 && f <= 0xa3 || d == 0x9d && e == 0x85 && f >= 0xb3 && f <= 0xba
	case 0xf3:
		yes = d == 0xa0
	}
	if yes {
		return charSize(c)
	}
	return 0
}

// ownRoom is how long the path of the run's own directory may be, with a NUL byte behind it.
const ownRoom = 1024

// inOwn reports whether the path is the run's own directory or something in it.
//
//go:norace
func (m *matcher) inOwn() bool {
	if m.ownSize == 0 || m.n < m.ownSize || m.n > m.ownSize && m.path[m.ownSize&(longRoom-1)] != '/' {
		return false
	}
	for i := uint(0); i < m.ownSize; i++ {
		if m.path[i&(longRoom-1)] != m.own[i&(ownRoom-1)] {
			return false
		}
	}
	return true
}
