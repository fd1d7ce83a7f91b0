package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// A .git file is judged when it is written, and git reads it later, as text. So only such texts are written as no later call can bend
// to a place outside of the roots, and the three calls that could are refused, by what the files of the disk say at that moment: a link
// that arrives, a directory that moves elsewhere, and one that moves up.
//
//	/root/.git/...                absolute, if the tool wrote an absolute path: nothing on the way can be renamed, or become a link
//	../../.git/...                beside a directory above: only moving up leads it out of the root (bentBelow)
//	store, ../store, ../r/.git/...  in the same directory, or a neighbour: one name that can become a link, by one call in one
//	                              directory, in which, and in whose directories, all .git files are that may name it (onWay)
//
// Behind a name .git, and in a git directory behind its worktrees or modules, no link can come to be; while r is none that is looked
// at, too. Nothing is remembered, so that a later sandbox knows as much as this one.

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

// onWay reports whether a .git file leads through the name of resolved path k, whose path is in s.m: no link may stand there.
//
//go:norace
func (s *State) onWay(k int) bool {
	sp, m := &s.resolved[k&1], &s.m
	if !sp.git.rules || sp.git.inside || sp.dir < 0 || m.nc == 0 {
		return false
	}
	if s.namedBeside(sp.dir, m.nc-1) {
		return true
	}
	for i := m.floor + 1; i < m.nc; i++ {
		if !m.ofLinked(i) {
			continue
		}
		dir := s.openAbove(i - 1)
		found := dir < 0 || s.namedBeside(dir, i-1)
		closeFD(dir)
		if found {
			return true
		}
	}
	return false
}

// namedBeside reports whether the .git file of dir, or of a directory in it, leads through the name in dir that is component c of the path.
// A directory that cannot be read is taken to hold such a file.
//
//go:norace
func (s *State) namedBeside(dir int, c uint) bool {
	if s.leadsBy(dir, s.above(0, ".git"), c, 0) {
		return true
	}
	s.literal(".")
	fd := openat(dir, &s.num[0], syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if fd < 0 {
		return true
	}
	found, n := false, 1
	for n > 0 && !found {
		n = sys(syscall.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&s.scan.dent[0])), dentBytes, 0, 0)
		for at := uint(0); at+19 < uint(max(n, 0)) && !found; {
			size := s.entrySize(at)
			if size < 20 {
				n = -1
				break
			}
			if s.mayBeDir(at) {
				found = s.leadsBy(fd, s.gitFileOf(at+19), c, 1)
			}
			at += size
		}
	}
	closeFD(fd)
	return found || n < 0
}

//go:norace
func (s *State) entrySize(at uint) uint {
	return uint(s.scan.dent[(at+16)&(dentBytes-1)]) | uint(s.scan.dent[(at+17)&(dentBytes-1)])<<8
}

// mayBeDir reports whether the entry at is that of a directory in which work trees may be: none of the two dots, and not .git.
//
//go:norace
func (s *State) mayBeDir(at uint) bool {
	d := &s.scan.dent
	if kind := d[(at+18)&(dentBytes-1)]; kind != syscall.DT_DIR && kind != syscall.DT_UNKNOWN || s.isDots(at+19) {
		return false
	}
	at += 19
	return d[at&(dentBytes-1)] != '.' || d[(at+1)&(dentBytes-1)] != 'g' || d[(at+2)&(dentBytes-1)] != 'i' || d[(at+3)&(dentBytes-1)] != 't' || d[(at+4)&(dentBytes-1)] != 0
}

// gitFileOf returns the path of the .git file in the directory whose name is at that byte of the entries.
//
//go:norace
func (s *State) gitFileOf(name uint) *byte {
	const tail = "/.git\x00"
	b, n := &s.w.b[0], uint(0)
	for n < 256 && s.scan.dent[(name+n)&(dentBytes-1)] != 0 {
		b[n] = s.scan.dent[(name+n)&(dentBytes-1)]
		n++
	}
	for i := uint(0); i < uint(len(tail)); i++ {
		b[n+i] = tail[i]
	}
	return &b[0]
}

// readGitFile reads a .git file into text 1, and returns where its path begins; 0: there is none.
//
//go:norace
func (s *State) readGitFile(dir int, path *byte) uint {
	const head = "gitdir:"
	t := &s.text[1]
	t.N = 0
	fd := openat(dir, path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if fd < 0 {
		return 0
	}
	n := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&t.B[0])), gittext.Room-1, 0, 0)
	closeFD(fd)
	if n <= len(head) {
		return 0
	}
	t.N = uint(n)
	for i := 0; i < len(head); i++ {
		if t.B[i] != head[i] {
			return 0
		}
	}
	at := uint(len(head))
	for at < t.N && t.B[at&(gittext.Room-1)] == ' ' {
		at++
	}
	return at
}

// textAt returns byte i of text 1, and 0 at the end of its line.
//
//go:norace
func (s *State) textAt(i uint) byte {
	t := &s.text[1]
	if c := t.B[i&(gittext.Room-1)]; i < t.N && c != '\n' && c != '\r' {
		return c
	}
	return 0
}

// leadsBy reports whether a .git file leads through component c of the path: by an absolute path, or by one that goes up so many
// directories and then names it.
//
//go:norace
func (s *State) leadsBy(dir int, path *byte, c, ups uint) bool {
	i, m := s.readGitFile(dir, path), &s.m
	if i == 0 {
		return false
	}
	from := uint(m.off[c&(compRoom-1)])
	if s.textAt(i) == '/' {
		for j := uint(0); j < from; j++ {
			if s.textAt(i) != m.path[j&(longRoom-1)] {
				return false
			}
			i++
		}
		return s.sameAsText(c, i)
	}
	for {
		for s.textAt(i) == '.' && s.textAt(i+1) == '/' || s.textAt(i) == '/' {
			i++
		}
		if ups == 0 {
			return s.sameAsText(c, i)
		}
		if s.textAt(i) != '.' || s.textAt(i+1) != '.' || s.textAt(i+2) != '/' {
			return false
		}
		i += 3
		ups--
	}
}

// sameAsText reports whether component c of the path is the name at byte i of text 1.
//
//go:norace
func (s *State) sameAsText(c, i uint) bool {
	m, fold := &s.m, s.m.fold
	at, end := uint(m.off[c&(compRoom-1)]), uint(m.off[(c+1)&(compRoom-1)])-1
	for ; at < end; at++ {
		a, b := m.path[at&(longRoom-1)], s.textAt(i)
		if fold && (a >= 0x80 || b >= 0x80) {
			return true
		}
		if a != b && (!fold || lower(a) != lower(b)) {
			return false
		}
		i++
	}
	return s.textAt(i) == '/' || s.textAt(i) == 0
}

// climbs reads the path that begins at byte i of text 1: how many directories it goes up, and whether it leads to a name .git then, and
// not to a linked worktree's directory. An absolute path goes up none.
//
//go:norace
func (s *State) climbs(i uint) (ups uint, module bool) {
	if s.textAt(i) == '/' {
		return 0, false
	}
	worktree, names := false, uint(0)
	for s.textAt(i) != 0 {
		at := i
		for c := s.textAt(i); c != 0 && c != '/'; c = s.textAt(i) {
			i++
		}
		size := i - at
		switch {
		case size == 2 && s.textAt(at) == '.' && s.textAt(at+1) == '.':
			ups++
			module, names = false, 0
		case size == 0, size == 1 && s.textAt(at) == '.':
		default:
			names++
			if names == 1 {
				module = size == 4 && s.textAt(at) == '.' && s.textAt(at+1) == 'g' && s.textAt(at+2) == 'i' && s.textAt(at+3) == 't'
			}
			worktree = names == 2 && size == 9 && s.textAt(at) == 'w' || worktree && names == 3
		}
		for s.textAt(i) == '/' {
			i++
		}
	}
	return ups, module && !worktree
}

// keepsWays decides whether the rename in hand bends what a .git file says: 0 or a negative errno.
//
//go:norace
func (s *State) keepsWays() int {
	a, b := &s.resolved[0], &s.resolved[1]
	if !a.git.rules || !b.git.rules {
		return 0
	}
	r := s.keepsWay(0, 1)
	if r == 0 && s.flags&renameExchange != 0 {
		r = s.keepsWay(1, 0)
	}
	return r
}

// keepsWay looks at what goes from the name of resolved path k to that of l. Where nothing can be said for the number of directories it is
// EXDEV, on which mv copies.
//
//go:norace
func (s *State) keepsWay(k, l int) int {
	switch s.typeOf(k) {
	case syscall.S_IFLNK:
		if r := s.judge(l); r < 0 {
			return r
		}
		if s.onWay(l) {
			return s.refuseAt(l, ReasonWay)
		}
		return 0
	case syscall.S_IFDIR:
		if s.bringsLinks(k, l) {
			return s.refuseAt(l, ReasonWay)
		}
		return s.keepsFiles(k, l)
	}
	return 0
}

// bringsLinks reports whether a directory that comes to the name of resolved path l may hold a link where a .git file leads through it: one
// that is no git directory, and has a worktrees or modules.
//
//go:norace
func (s *State) bringsLinks(k, l int) bool {
	a, b := &s.resolved[k&1], &s.resolved[l&1]
	if s.judge(l) < 0 {
		return true
	}
	below := false
	for i := s.m.floor + 1; i < s.m.nc; i++ {
		below = below || s.m.ofLinked(i)
	}
	if !below || b.git.inside {
		fd := openat(a.dir, &a.name[0], oPath|syscall.O_NOFOLLOW|a.withoutSlash()|syscall.O_DIRECTORY, 0)
		if fd < 0 {
			return true
		}
		below = !b.git.inside && (lstatat(fd, s.above(0, "worktrees"), &s.st) != -eNOENT || lstatat(fd, s.above(0, "modules"), &s.st) != -eNOENT) && !shaped(s.keys(fd))
		closeFD(fd)
	}
	return below && s.onWay(l)
}

// keepsFiles decides whether the directory at resolved path k may go to another directory, at l, for the .git files in it. In the same
// directory they say what they said.
//
//go:norace
func (s *State) keepsFiles(k, l int) int {
	a, b := &s.resolved[k&1], &s.resolved[l&1]
	s.literal("")
	if lstatat(a.dir, &s.num[0], &s.st) < 0 {
		return -eACCES
	}
	dev, ino := uint64(s.st.Dev), s.st.Ino
	if lstatat(b.dir, &s.num[0], &s.st) < 0 {
		return -eACCES
	}
	if dev == uint64(s.st.Dev) && ino == s.st.Ino {
		return 0
	}
	if r := s.judge(k); r < 0 {
		return r
	}
	before := s.m.nc - s.m.floor
	if r := s.judge(l); r < 0 {
		return r
	}
	after := s.m.nc - s.m.floor
	fd := openat(a.dir, &a.name[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|a.withoutSlash()|syscall.O_DIRECTORY, 0)
	if fd < 0 {
		return -int(syscall.EXDEV)
	}
	if at := s.readGitFile(fd, s.above(0, ".git")); at != 0 {
		if ups, module := s.climbs(at); ups > 0 && (!module || ups > after) {
			closeFD(fd)
			return s.refuseAt(k, ReasonWay)
		}
	}
	if after >= before {
		closeFD(fd)
		return 0
	}
	r := s.bentBelow(fd, after)
	if r == -eACCES {
		return s.refuseAt(k, ReasonWay)
	}
	return r
}

// bentBelow looks for a .git file below the directory fd, which is closed, that goes up out of the root when fd lies so deep in it: 0 or
// a negative errno.
//
//go:norace
func (s *State) bentBelow(fd int, depth uint) int {
	c := &s.scan
	c.at, c.left, c.fd[0] = 0, scanEntries, fd
	for {
		r := s.nextDir()
		if r > 0 {
			at := s.readGitFile(c.fd[c.at&(scanDepth-1)], s.above(0, ".git"))
			if at == 0 {
				continue
			}
			ups, _ := s.climbs(at)
			if ups <= depth+c.at {
				continue
			}
			r = -eACCES
		}
		closeFD(c.fd[c.at&(scanDepth-1)])
		if r < 0 {
			for ; c.at > 0; c.at-- {
				closeFD(c.fd[(c.at-1)&(scanDepth-1)])
			}
			return r
		}
		if c.at == 0 {
			return 0
		}
		c.at--
		sys(syscall.SYS_LSEEK, uintptr(c.fd[c.at&(scanDepth-1)]), uintptr(c.next[c.at&(scanDepth-1)]), 0, 0, 0)
	}
}

// nextDir goes down into the next directory: 1, 0 at the present one's end, or a negative errno.
//
//go:norace
func (s *State) nextDir() int {
	c := &s.scan
	fd := c.fd[c.at&(scanDepth-1)]
	for {
		n := sys(syscall.SYS_GETDENTS64, uintptr(fd), uintptr(unsafe.Pointer(&c.dent[0])), dentBytes, 0, 0)
		if n <= 0 {
			return n
		}
		for at := uint(0); at+19 < uint(n); {
			size, entry := s.entrySize(at), at
			if size < 20 || c.left == 0 {
				return -int(syscall.EXDEV)
			}
			c.left--
			at += size
			if !s.mayBeDir(entry) {
				continue
			}
			child := openat(fd, &c.dent[(entry+19)&(dentBytes-1)], syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
			switch {
			case child == -eNOENT, child == -int(syscall.ENOTDIR), child == -eLOOP:
				continue
			case child < 0, c.at+1 >= scanDepth:
				closeFD(child)
				return -int(syscall.EXDEV)
			}
			next := int64(0)
			for i := uint(8); i > 0; i-- {
				next = next<<8 | int64(c.dent[(entry+7+i)&(dentBytes-1)])
			}
			c.next[c.at&(scanDepth-1)] = next
			c.at++
			c.fd[c.at&(scanDepth-1)] = child
			return 1
		}
	}
}
