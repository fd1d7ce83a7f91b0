package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// `git checkout .` writes what the index says, and so does every command by which a user throws a tool's changes away. So an index brings no
// protected name that the index it replaces did not have: an entry whose name is protected stands there with the same mode and object, or
// says what the work tree has at that name, which the tool cannot change (git add -A of the user's own files).
//
// A shared index (git update-index --split-index) with a protected name is not made, and an index takes no replaced entries, which have no
// names, of a shared index that has one: which entry they replace stands in compressed bitmaps. A sparse index keeps its directories.
// Extension REUC, from which `git checkout -m` makes entries again, has no protected name. What the extension TREE says counts in commits alone.

// compareMost is how many bytes of a work tree's files are read for one index.
const compareMost = 16 << 20

const anyTree = -1 << 20

// beginEntries prepares mayEnter for what is to be resolved path b; the configuration is in text 0.
//
//go:norace
func (s *State) beginEntries(b *resolvedPath, oid uint) {
	e, w := &s.entries, &s.was
	e.held, e.looked, e.tree, e.dir, e.budget = true, false, -1, b.dir, compareMost
	w.start(-1)
	s.wasPart.start(-1)
	w.live, s.wasPart.live = false, false
	if s.text[0].N = 0; s.load(0, b.dir, s.above(b.git.up, "config")) != 0 {
		s.text[0].N = 0
	}
	e.tree = s.workTree(b)
	switch made := e.tree >= 0 && s.madeByTool(e.tree); {
	case (made || e.tree == anyTree) && s.madeByTool(b.dir): // see countsAsUsers
		e.held = false
		return
	case made: // the tool has bent gitdir
		closeFD(e.tree)
		e.tree = -1
	}
	if e.tree < 0 || !s.prefixAt(e.tree) {
		s.prefixAt(b.dir) // so that the names count at least
	}
	if !b.isName("index") {
		closeFD(e.tree)
		e.tree = -1
		return
	}
	w.start(openat(b.dir, &b.name[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0))
	if w.fd >= 0 && w.header(oid) {
		w.advance()
	}
}

//go:norace
func (s *State) endEntries() {
	closeFD(s.entries.tree)
	closeFD(s.was.fd)
	closeFD(s.wasPart.fd)
	s.entries.held = false
}

// madeByTool reports whether the tool has made the directory: names in it are free then.
//
//go:norace
func (s *State) madeByTool(dir int) bool {
	s.literal("")
	return s.record != 0 && s.statx(dir, &s.num[0]) == 0 && s.kindSeen() == slotMade
}

// prefixAt makes the path in s.m that of dir; false if it lies in no root. Without a path every name is protected.
//
//go:norace
func (s *State) prefixAt(dir int) bool {
	e, m := &s.entries, &s.m
	e.prefix = 0
	if s.canonical(dir) <= 0 || m.path[0] != '/' {
		return false
	}
	e.prefix = m.n
	m.addName(s.num[:]) // any name
	m.split()
	m.pat = offRecords
	m.roots()
	return m.floor < m.nc
}

// workTree opens the work tree of the index that resolved path b is: that of core.worktree, else the directory that .git is in; of a linked
// work tree the one that gitdir names. -1: it is not known; anyTree: the repository does not say it, .git files do.
//
//go:norace
func (s *State) workTree(b *resolvedPath) int {
	const flags, tail = oPath | syscall.O_DIRECTORY, "/.git"
	path, n := &s.w.b[0], uint(0)
	at, end, t := uint(0), uint(0), &s.text[0]
	switch {
	case b.git.up == 0:
		at, end = t.WorkTreePath()
		if end == 0 && s.canonical(b.dir) > 0 {
			s.m.split()
			if s.m.nc > 0 && s.m.dotGit(s.m.nc-1) {
				return openat(b.dir, s.above(1, "."), flags, 0)
			}
			return anyTree
		}
	case b.git.up == 2 && b.git.class == gitText:
		t = &s.text[1]
		s.literal("gitdir")
		if s.load(1, b.dir, &s.num[0]) != 0 || t.N < uint(len(tail))+2 || t.B[(t.N-1)&(gittext.Room-1)] != '\n' {
			return -1
		}
		end = t.N - 1 - uint(len(tail))
		for i := uint(0); i < uint(len(tail)); i++ {
			if t.B[(end+i)&(gittext.Room-1)] != tail[i] {
				return -1
			}
		}
	}
	for ; at < end && n < pathMax-1; at++ {
		path[n&(2*pathMax-1)] = t.B[at&(gittext.Room-1)]
		n++
	}
	if path[n&(2*pathMax-1)] = 0; n == 0 {
		return -1
	}
	return openat(b.dir, &path[0], flags, 0)
}

// advance goes to the next entry, as far as the index can be read.
//
//go:norace
func (x *indexScan) advance() {
	if x.live = x.left > 0 && x.entry(false); x.live {
		x.left--
	}
}

// mayEnter reports whether the present entry may be in the index.
//
//go:norace
func (s *State) mayEnter() bool {
	x := &s.index
	if !s.entries.held || s.was.has(x) {
		return true
	}
	if x.mode != modeDir && (!s.holdsEntry() || s.asInTree()) {
		return true
	}
	if !s.entries.looked {
		s.findOldPart()
	}
	return s.wasPart.has(x)
}

// findOldPart opens the shared index of the index that is replaced.
//
//go:norace
func (s *State) findOldPart() {
	p := &s.wasPart
	s.entries.looked = true
	s.literal("")
	if s.was.fd < 0 || lstatat(s.was.fd, &s.num[0], &s.st) != 0 {
		return
	}
	p.start(s.was.fd)
	p.total = uint(s.st.Size)
	for p.live = p.header(s.was.oid); p.live; {
		p.advance()
	}
	size := uint(0)
	for kind := p.extension(&size); kind != 0; kind = p.extension(&size) {
		if kind == extLink && size >= p.oid {
			p.readID()
			p.start(s.openPart(p))
			if p.fd >= 0 && p.header(p.oid) {
				p.advance()
			}
			return
		}
		p.skip(size)
	}
	p.start(-1)
}

// has reports whether x's present entry, with its mode and object, is in the index, which is read on as far as its names are less.
//
//go:norace
func (w *indexScan) has(x *indexScan) bool {
	for ; w.live; w.advance() { // the next entry of the same name has another stage
		order := w.compare(x)
		if order > 0 {
			return false
		}
		if order == 0 && w.mode == x.mode && (x.mode == modeModule || sameID(&w.id, &x.id)) {
			return true
		}
	}
	return false
}

// sameID compares two names of objects.
//
//go:norace
func sameID(a, b *[32]byte) bool {
	other := byte(0)
	for i := range a {
		other |= a[i] ^ b[i]
	}
	return other == 0
}

// compare compares the names of two entries, in the order in which an index has them.
//
//go:norace
func (x *indexScan) compare(y *indexScan) int {
	for i := uint(0); i < x.size && i < y.size; i++ {
		if c, d := x.name[i&(pathMax-1)], y.name[i&(pathMax-1)]; c != d {
			return int(c) - int(d)
		}
	}
	return int(x.size) - int(y.size)
}

// holdsEntry reports whether the rules protect the present entry's name.
//
//go:norace
func (s *State) holdsEntry() bool {
	e, m, x := &s.entries, &s.m, &s.index
	at := e.prefix
	if at == 0 {
		return true
	}
	if at > 1 {
		m.path[at&(longRoom-1)] = '/'
		at++
	}
	for i := uint(0); i < x.size; i++ {
		m.path[at&(longRoom-1)] = x.name[i&(pathMax-1)]
		at++
	}
	m.n = at
	m.judge()
	bar := uint32(hitNames | hitHidden)
	if x.mode != modeFile && x.mode != modeProgram {
		bar |= hitPrefix // a link or a submodule would bring what lies in it
	}
	if x.mode == modeLink {
		bar |= hitDeep
	}
	return (m.hit|m.byName)&bar != 0
}

// asInTree reports whether the present entry says what the work tree has at its name. What is hidden is not compared: the answer would
// tell of it.
//
//go:norace
func (s *State) asInTree() bool {
	e, x := &s.entries, &s.index
	if e.tree < 0 || s.m.hit&hitHidden != 0 || x.size >= pathMax {
		return false
	}
	x.name[x.size&(pathMax-1)] = 0
	fd := s.openNoLinks(e.tree, &x.name[0], syscall.O_NOFOLLOW)
	if fd < 0 {
		return false
	}
	s.literal("")
	same := lstatat(fd, &s.num[0], &s.st) == 0 && s.sameBlob(fd)
	closeFD(fd)
	return same
}

// sameBlob reports whether the file of an O_PATH descriptor, of which s.st tells, is the present entry's object.
//
//go:norace
func (s *State) sameBlob(fd int) bool {
	e, x, sum := &s.entries, &s.index, &s.blob
	size, program := uint(s.st.Size), s.st.Mode&0o100 != 0
	kind := s.st.Mode & syscall.S_IFMT
	if size > e.budget || kind == syscall.S_IFREG && x.mode == modeProgram && !program {
		return false
	}
	e.budget -= size
	sum.begin(x.oid, size)
	switch {
	case kind == syscall.S_IFLNK && x.mode == modeLink:
		b := &s.w.b[0]
		s.literal("")
		n := sys(syscall.SYS_READLINKAT, uintptr(fd), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&b[0])), pathMax, 0)
		for i := 0; i < n; i++ {
			sum.add(b[i&(pathMax-1)])
		}
	case kind == syscall.S_IFREG && (x.mode == modeFile || x.mode == modeProgram):
		in := s.reopen(fd, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
		for left := size; left > 0 && in >= 0; {
			n := sys(syscall.SYS_READ, uintptr(in), uintptr(unsafe.Pointer(&s.scan.dent[0])), dentBytes, 0, 0)
			for i := 0; i < n; i++ {
				sum.add(s.scan.dent[i&(dentBytes-1)])
			}
			if n <= 0 || uint(n) > left {
				break
			}
			left -= uint(n)
		}
		closeFD(in)
	default:
		return false
	}
	return sum.end(&x.id)
}

// Extensions of an index: the shared part of a split one, and conflicts that were solved.
const (
	extLink = 'l'<<24 | 'i'<<16 | 'n'<<8 | 'k'
	extUndo = 'R'<<24 | 'E'<<16 | 'U'<<8 | 'C'
)

// extension reads the head of the next extension: its name, and its size; 0 at the end.
//
//go:norace
func (x *indexScan) extension(size *uint) (kind uint) {
	if x.bad || x.read+x.oid+8 > x.total {
		return 0
	}
	kind, *size = x.number(4), x.number(4)
	x.bad = x.bad || *size > x.total-x.oid-x.read
	return kind
}

//go:norace
func (x *indexScan) skip(n uint) {
	for ; n > 0 && !x.bad; n-- {
		x.next()
	}
}

//go:norace
func (x *indexScan) readID() {
	for i := uint(0); i < x.oid; i++ {
		x.id[i&31] = x.next()
	}
}

// harmlessExtensions reads what follows the entries. nameless says that there are entries without names.
//
//go:norace
func (s *State) harmlessExtensions(nameless bool) bool {
	x, size, shared := &s.index, uint(0), false
	if !s.entries.held {
		return true
	}
	for kind := x.extension(&size); kind != 0 && !x.bad; kind = x.extension(&size) {
		end := x.read + size
		switch kind {
		case extLink:
			if shared || size < x.oid {
				return false
			}
			shared = true
			x.readID()
		case extUndo:
			for x.read < end && !x.bad {
				if x.undone(); s.holdsEntry() {
					x.why = ReasonEntry
					return false
				}
			}
		}
		x.skip(end - min(end, x.read))
	}
	return !x.bad && (!shared || !nameless || s.freeOfHeld())
}

// undone reads one record of extension REUC: a name, and of up to three stages the mode, in digits, and the object.
//
//go:norace
func (x *indexScan) undone() {
	objects := uint(0)
	for x.size = 0; !x.bad && x.size < pathMax; x.size++ {
		if x.name[x.size&(pathMax-1)] = x.next(); x.name[x.size&(pathMax-1)] == 0 {
			break
		}
	}
	for i := 0; i < 3; i++ {
		absent := true
		for c := x.next(); c != 0 && !x.bad; c = x.next() {
			absent = absent && c == '0'
		}
		if !absent {
			objects++
		}
	}
	x.skip(objects * x.oid)
	x.mode = modeFile
}

// openPart opens the shared index whose object is x.id: a descriptor, or a negative errno.
//
//go:norace
func (s *State) openPart(x *indexScan) int {
	const word, digits = "sharedindex.", "0123456789abcdef"
	b, at := &s.small, uint(len(word))
	for i := 0; i < len(word); i++ {
		b[i&511] = word[i]
	}
	for i := uint(0); i < x.oid; i++ {
		b[at&511], b[(at+1)&511] = digits[x.id[i&31]>>4], digits[x.id[i&31]&15]
		at += 2
	}
	b[at&511] = 0
	return openat(s.entries.dir, &b[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// freeOfHeld reports whether the shared index whose object is in index.id has no protected name.
//
//go:norace
func (s *State) freeOfHeld() bool {
	x := &s.index
	fd := s.openPart(x)
	x.start(fd)
	free := fd >= 0 && x.header(x.oid)
	for ; free && x.left > 0; x.left-- {
		if free = x.entry(false); free && (x.mode == modeDir || s.holdsEntry()) {
			x.why, free = ReasonEntry, false
		}
	}
	closeFD(fd)
	return free
}
