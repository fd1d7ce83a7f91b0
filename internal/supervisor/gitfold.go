package supervisor

// Where a file system folds case, a path that gitLines leaves free can be another spelling of one that it does not: spell.go has the spellings.
// "**" is what lets them in: rebase-merge/GIT-REBASE-ToDO is a name below rebase-merge. The code in this file runs in the forked child as
// well: see the rules above Serve.

// anyName stands in foldComponents' copy for a component that may be a short name, of any long one. No other byte there is above ASCII.
const anyName = 0x80

// foldedClass returns the class of the path from byte at on, which is class as it is spelled, gitData or gitTree: another where a file system
// that folds case takes the path for one that is closed, or for a directory of git's.
//
//go:norace
func (m *matcher) foldedClass(at uint, class uint8) uint8 {
	end := m.n
	if !m.fold || !m.otherThanPlain(at) {
		return class
	}
	if end > longRoom/2-512 {
		return gitKept
	}
	short := m.foldComponents(at)
	for i := range gitLines {
		if !m.globFolded(gitLines[i].glob, longRoom/2) {
			continue
		}
		c := gitLines[i].class
		switch c {
		case gitKept, gitText, gitLock, gitConfig, gitCommon:
			class, short = gitKept, false
		case gitDir, gitFixed:
			class = c
		}
		if !short { // of a short name any line may be meant
			break
		}
	}
	m.n = end
	return class
}

// otherThanPlain reports whether the path from byte at on has anything but small letters and the like: what folding leaves as it is.
//
//go:norace
func (m *matcher) otherThanPlain(at uint) bool {
	for ; at < m.n; at++ {
		switch c := m.path[at&(longRoom-1)]; {
		case c >= 0x80, c >= 'A' && c <= 'Z', c == ':', c == '~':
			return true
		case c == '.' || c == ' ':
			if at+1 == m.n || m.path[(at+1)&(longRoom-1)] == '/' {
				return true
			}
		}
	}
	return false
}

// foldComponents puts the path from byte at on, as a file system reads it that folds case, into the upper half of m.path, and makes its end
// m.n. It returns whether there may be a short name in it.
//
//go:norace
func (m *matcher) foldComponents(at uint) (short bool) {
	to, first := uint(longRoom/2), uint(longRoom/2) // first byte of the component
	stream, tilde := false, false
	for ; ; at++ {
		c, d := byte('/'), byte(0)
		if at < m.n {
			c = m.path[at&(longRoom-1)]
		}
		if at+1 < m.n {
			d = m.path[(at+1)&(longRoom-1)]
		}
		if c == '/' {
			for to > first+1 && (m.path[(to-1)&(longRoom-1)] == '.' || m.path[(to-1)&(longRoom-1)] == ' ') {
				to--
			}
			if tilde {
				m.path[first&(longRoom-1)], to, short = anyName, first+1, true
			}
			if at >= m.n {
				break
			}
			m.path[to&(longRoom-1)] = '/'
			to++
			first, stream, tilde = to, false, false
			continue
		}
		stream = stream || c == ':' && to > first
		tilde = tilde || c == '~' && d >= '0' && d <= '9'
		if stream {
			continue
		}
		for w := folded(c, d, m.path[(at+2)&(longRoom-1)]); w != 0; w >>= 8 {
			m.path[to&(longRoom-1)] = byte(w)
			to++
		}
	}
	m.n = to
	return short
}

// globFolded is glob for foldComponents' copy: letters of the glob count in either case. No line has two stars in one component.
//
//go:norace
func (m *matcher) globFolded(g string, at uint) bool {
	i, size := uint(0), uint(len(g))
	for {
		if byteOf(g, i) == '*' && byteOf(g, i+1) == '*' {
			return at < m.n
		}
		end := at
		for end < m.n && m.path[end&(longRoom-1)] != '/' {
			end++
		}
		short := end == at+1 && m.path[at&(longRoom-1)] == anyName
		for ; i < size && byteOf(g, i) != '/'; i++ {
			switch c := byteOf(g, i); {
			case short:
			case c == '*': // what is left of the glob's component is the end of the path's
				rest := uint(0)
				for j := i + 1; j < size && byteOf(g, j) != '/'; j++ {
					rest++
				}
				if end < at+rest {
					return false
				}
				at = end - rest
			case at < end && (c == '?' || lower(c) == m.path[at&(longRoom-1)]):
				at++
			default:
				return false
			}
		}
		if short {
			at = end
		}
		switch {
		case at != end:
			return false
		case i >= size || end >= m.n:
			return i >= size && end >= m.n
		}
		i, at = i+1, end+1
	}
}

// byteOf returns byte i of a word, 0 behind its end.
//
//go:norace
func byteOf(word string, i uint) byte {
	if i < uint(len(word)) {
		return word[i]
	}
	return 0
}
