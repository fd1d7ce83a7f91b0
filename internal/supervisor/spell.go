package supervisor

// The spellings that file systems take for one name. ext4 and f2fs can fold case, by directory; vfat, exFAT, NTFS and SMB always do. Those
// also leave out dots and blanks at the end, take what follows a colon for a part of the file (NTFS, "Alternate Data Streams"), and know each
// long name by a short one, too (vfat and NTFS, "8.3"): GIT~1. All are compared in each root that folds, whatever its file system, since
// that is the tool's to choose in part. The code in this file runs in the forked child as well: see the rules above Serve.

// sameFolded compares the path from at to end with the name from n to last, as such a file system reads them.
//
//go:norace
func (m *matcher) sameFolded(at, end, n, last uint, mode byte) bool {
	end = m.nameEnd(at, end)
	if mode == compSuffix {
		first := lower(m.rb(n))
		for from := at; from < end; from++ {
			c := m.path[from&(longRoom-1)]
			if c < 0x80 && lower(c) != first && first < 0x80 {
				continue
			}
			if m.foldedFrom(from, end, n, last, compLiteral) {
				return true
			}
		}
	} else if m.foldedFrom(at, end, n, last, mode) {
		return true
	}
	return m.short && m.shortFor(at, end, n, last, mode)
}

// nameEnd returns where the name from at to end is over for a file system that leaves the rest out.
//
//go:norace
func (m *matcher) nameEnd(at, end uint) uint {
	for i := at + 1; i < end; i++ {
		if m.path[i&(longRoom-1)] == ':' {
			end = i
		}
	}
	for end > at+1 && (m.path[(end-1)&(longRoom-1)] == '.' || m.path[(end-1)&(longRoom-1)] == ' ') {
		end--
	}
	return end
}

//go:norace
func (m *matcher) foldedFrom(at, end, n, last uint, mode byte) bool {
	have, want := uint32(0), uint32(0)
	for {
		for ; have == 0 && at < end; at++ {
			have = folded(m.path[at&(longRoom-1)], m.path[(at+1)&(longRoom-1)], m.path[(at+2)&(longRoom-1)])
		}
		for ; want == 0 && n < last; n++ {
			want = folded(m.rb(n), m.rb(n+1), m.rb(n+2))
		}
		if want == 0 {
			return have == 0 || mode == compPrefix
		}
		if byte(have) != byte(want) {
			return false
		}
		have, want = have>>8, want>>8
	}
}

// shortFor reports whether the component from at to end is a short name for what the name from n to last asks for: up to six letters
// of the long one without dots, or two and four hexadecimal digits, then "~" and a number; and the first three of its extension.
//
//go:norace
func (m *matcher) shortFor(at, end, n, last uint, mode byte) bool {
	tilde := at
	for tilde < end && m.path[tilde&(longRoom-1)] != '~' {
		tilde++
	}
	i := tilde + 1
	for i < end && m.path[i&(longRoom-1)] >= '0' && m.path[i&(longRoom-1)] <= '9' {
		i++
	}
	if stem := tilde - at; i <= tilde+1 || i-at > 8 || stem == 0 || end > i+4 || i < end && m.path[i&(longRoom-1)] != '.' {
		return false
	}
	for n < last && m.rb(n) == '.' && mode != compSuffix {
		n++
	}
	dot := last // of the extension
	for j := n; j < last; j++ {
		if m.rb(j) == '.' {
			dot = j
		}
	}
	return m.shortExtension(i, end, dot, last, mode) && (mode == compSuffix || m.shortStem(at, tilde, n, dot, mode, i-at == 8) || m.shortHash(at, tilde, n, dot, mode))
}

// shortExtension compares what is behind the number, from i on, with the extension of the name, from its dot on. A name of
// which the ending is open may have any.
//
//go:norace
func (m *matcher) shortExtension(i, end, dot, last uint, mode byte) bool {
	if mode == compPrefix {
		return true
	}
	for j := uint(0); j < 4; j++ {
		c, d := byte(0), byte(0)
		if i+j < end {
			c = m.path[(i+j)&(longRoom-1)]
		}
		if dot+j < last {
			d = m.rb(dot + j)
		}
		if lower(c) != lower(d) {
			return false
		}
	}
	return true
}

// shortStem compares the letters before the tilde with those of the name, in which dots do not count: with all of them, unless the
// short name is cut.
//
//go:norace
func (m *matcher) shortStem(at, tilde, n, dot uint, mode byte, cut bool) bool {
	for ; ; at++ {
		for n < dot && m.rb(n) == '.' {
			n++
		}
		if at >= tilde {
			return cut || n >= dot
		}
		if n >= dot {
			return mode == compPrefix
		}
		if lower(m.path[at&(longRoom-1)]) != lower(m.rb(n)) {
			return false
		}
		n++
	}
}

// shortHash is for names of which there are more than four: their hash follows the first letters.
//
//go:norace
func (m *matcher) shortHash(at, tilde, n, dot uint, mode byte) bool {
	if tilde-at < 5 || tilde-at > 6 || !m.shortStem(at, tilde-4, n, dot, mode, true) {
		return false
	}
	for i := tilde - 4; i < tilde; i++ {
		c := lower(m.path[i&(longRoom-1)])
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// dotGit reports whether component i of the path is .git to such a file system.
//
//go:norace
func (m *matcher) dotGit(i uint) bool {
	at, end := uint(m.off[i&(compRoom-1)]), uint(m.off[(i+1)&(compRoom-1)])-1
	if c := m.path[at&(longRoom-1)]; c < 0x80 && c != '.' && c != 'g' && c != 'G' {
		return false
	}
	return m.sameFolded(at, end, dotGitAt, dotGitAt+uint(len(dotGitWord)), compLiteral)
}
