package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// git checks the names in an index when they are added, and not when it reads the file: `git checkout .` writes what a forged one
// says, .git/hooks and ../ too. So an index is never opened for writing in place, and a rename onto one is carried out only if each
// name in it is one that git would add. No copy is made, for an index is large: that nothing has the file open for writing is known from
// its one link and from a lease, which the kernel grants only then (fcntl(2), F_SETLEASE); opens come through this supervisor. A file
// system that grants no leases (NFS, 9p, Ceph), or a file of another owner, takes a copy: the bytes that are judged are those that are written.

const (
	indexMost = 1 << 30
	fSetLease = 1024

	// The modes of entries.
	modeDir     = 0o040000 // a directory of a sparse index
	modeFile    = 0o100644
	modeProgram = 0o100755
	modeLink    = 0o120000
	modeModule  = 0o160000 // a submodule: its object is a commit, which checkout does not take out
)

// next returns the next byte of the file.
//
//go:norace
func (x *indexScan) next() byte {
	if x.at >= x.n && x.fill() <= 0 {
		x.bad = true
		return 0
	}
	c := x.b[x.at&(indexBytes-1)]
	x.at++
	x.read++
	return c
}

// fill reads the next bytes: how many, or a negative errno.
//
//go:norace
func (x *indexScan) fill() int {
	x.at, x.n = 0, 0
	if x.filled > indexMost {
		return -int(syscall.EFBIG) // who has it open may write on and on
	}
	r := sys(syscall.SYS_PREAD64, uintptr(x.fd), uintptr(unsafe.Pointer(&x.b[0])), indexBytes, uintptr(x.filled), 0)
	if r > 0 {
		x.n = uint(r)
		x.filled += x.n
	}
	return r
}

// start puts the cursor at the beginning of fd.
//
//go:norace
func (x *indexScan) start(fd int) {
	x.fd, x.at, x.n, x.read, x.filled, x.bad, x.size = fd, 0, 0, 0, 0, false, 0
}

//go:norace
func (x *indexScan) number(bytes int) uint {
	v := uint(0)
	for ; bytes > 0; bytes-- {
		v = v<<8 | uint(x.next())
	}
	return v
}

// replaceIndex carries out a rename onto an index.
//
//go:norace
func (s *State) replaceIndex() int {
	a, b := &s.resolved[0], &s.resolved[1]
	if s.typeOf(0) != syscall.S_IFREG || a.st.Nlink != 1 || s.lockedByOther(b) {
		return s.refuseAt(1, ReasonLock)
	}
	own := s.ownLock(0)
	if a.hit&hitLock != 0 && (own < 0 || !s.locksName(a, b)) {
		return s.refuseAt(1, ReasonLock)
	}
	fd := openat(a.dir, &a.name[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if fd < 0 {
		return fd
	}
	lease := sys(syscall.SYS_FCNTL, uintptr(fd), fSetLease, syscall.F_RDLCK, 0, 0)
	s.literal("")
	same := lstatat(fd, &s.num[0], &s.st) == 0 && s.st.Ino == a.st.Ino && s.st.Dev == a.st.Dev && s.st.Nlink == 1
	r, ids := 0, s.indexIDs(b)
	s.beginEntries(b, ids)
	switch {
	case !same, lease == -int(syscall.EAGAIN): // open for writing
		r = s.refuseAt(1, ReasonIndex)
	case lease < 0:
		r = s.copyIndex(fd, ids)
	case !s.harmlessIndex(fd, ids):
		r = s.refuseAt(1, s.index.why)
	default:
		if mode := s.modeFor(b, a.st.Mode&0o777); mode != a.st.Mode&0o777 {
			r = sys(syscall.SYS_FCHMOD, uintptr(fd), uintptr(mode), 0, 0, 0)
		}
		if r == 0 {
			r = s.renameNow()
		}
		if r == 0 && !s.standsAlone(fd, b) {
			sys(syscall.SYS_UNLINKAT, uintptr(b.dir), uintptr(unsafe.Pointer(&b.name[0])), 0, 0, 0)
			r = s.refuseAt(1, ReasonRace)
		}
	}
	closeFD(fd)
	s.endEntries()
	if r == 0 && own >= 0 {
		s.locks[own&(lockRoom-1)].forget()
	}
	return r
}

// copyIndex puts a judged copy of fd, which is resolved path a's file, in the place of resolved path b, and removes resolved path a's name.
//
//go:norace
func (s *State) copyIndex(fd int, ids uint) int {
	a, b, x := &s.resolved[0], &s.resolved[1], &s.index
	out := s.newCopy(b.dir)
	if out < 0 {
		return out
	}
	x.start(fd)
	r := x.fill()
	for r > 0 {
		for done := uint(0); done < x.n && r > 0; done += uint(max(r, 0)) {
			r = sys(syscall.SYS_WRITE, uintptr(out), uintptr(unsafe.Pointer(&x.b[done&(indexBytes-1)])), uintptr(x.n-done), 0, 0)
		}
		if r > 0 {
			r = x.fill()
		}
	}
	if r == 0 && !s.harmlessIndex(out, ids) {
		r = s.refuseAt(1, s.index.why)
	}
	if r = s.endCopy(b.dir, out, r, s.modeFor(b, a.st.Mode)); r == 0 {
		r = s.renameCopy(b.dir, &b.name[0])
	}
	if r == 0 {
		sys(syscall.SYS_UNLINKAT, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), 0, 0, 0)
	}
	return r
}

// indexIDs returns the size of the names of objects in the index that resolved path b is: that of the repository; and of a shared index, by
// which git finds it, that of the one in its name.
//
//go:norace
func (s *State) indexIDs(b *resolvedPath) uint {
	const shared = "sharedindex."
	n := uint(0)
	for n < 256 && b.name[n] != 0 {
		n++
	}
	if !b.isName("index") {
		switch n - uint(len(shared)) {
		case 2 * gittext.SHA1Size:
			return gittext.SHA1Size
		case 2 * gittext.SHA256Size:
			return gittext.SHA256Size
		}
		return gittext.UnknownSize
	}
	if b.git.up >= climbStep {
		return gittext.UnknownSize
	}
	s.text[0].N, s.text[0].WorkTree = 0, false
	if r := s.load(0, b.dir, s.above(b.git.up, "config")); r < 0 && r != -eNOENT {
		return gittext.UnknownSize
	}
	return s.text[0].IDSize()
}

// keepsIDs reports whether the configuration in dir, which is text old, may be replaced by text next, or by none: while there is
// an index the size of its names stays.
//
//go:norace
func (s *State) keepsIDs(dir int, old, next *gittext.Text) bool {
	if old.IDSize() == next.IDSize() {
		return true
	}
	s.literal("index")
	if lstatat(dir, &s.num[0], &s.st) != -eNOENT {
		return false
	}
	s.literal("worktrees")
	return lstatat(dir, &s.num[0], &s.st) == -eNOENT
}

// harmlessIndex reads an index of version 2 to 4 (gitformat-index(5)), of which it has to understand every entry, as git does with one
// thread and with several. Names of objects have oid bytes. Nothing else writes the file. index.why is the reason when it returns false.
//
//go:norace
func (s *State) harmlessIndex(fd int, oid uint) bool {
	x := &s.index
	x.start(fd)
	x.why = ReasonIndex
	s.literal("")
	if oid == gittext.UnknownSize || lstatat(fd, &s.num[0], &s.st) != 0 || s.st.Size > indexMost {
		return false
	}
	x.total = uint(s.st.Size)
	if !x.findBlocks(oid) || !x.header(oid) {
		return false
	}
	block, first := uint(0), uint(0) // the next block, and the number of its first entry
	nameless, count := false, x.left
	for i := uint(0); i < count && !x.bad; i++ {
		begins := block < x.blocks && i == first
		if begins {
			if b := &x.block[block&(indexBlocks-1)]; b.offset == x.read {
				first += b.entries
				block++
			} else {
				return false
			}
		}
		if !x.entry(begins) || !x.harmlessName(x.mode == modeDir) {
			return false
		}
		nameless = nameless || x.size == 0
		if !s.mayEnter() {
			x.why = ReasonEntry
			return false
		}
	}
	return !x.bad && block == x.blocks && (block == 0 || first == count) && (x.end == 0 || x.end == x.read) && s.harmlessExtensions(nameless)
}

// header reads what stands before the entries, and notes how many follow.
//
//go:norace
func (x *indexScan) header(oid uint) bool {
	magic := x.number(4)
	x.version, x.left, x.oid = x.number(4), x.number(4), oid
	return magic == 'D'<<24|'I'<<16|'R'<<8|'C' && x.version >= 2 && x.version <= 4 && !x.bad
}

// findBlocks notes where git with several threads finds the extensions, by extension EOIE before the checksum, and the blocks of
// entries, by extension IEOT (read-cache.c, read_eoie_extension and read_ieot_extension).
//
//go:norace
func (x *indexScan) findBlocks(oid uint) bool {
	const size = 8 + 24 // of EOIE, whatever the size of objects' names
	x.end, x.blocks = 0, 0
	if x.total < oid+size {
		return true
	}
	tail := x.total - oid - size
	if x.numberAt(tail) != 'E'<<24|'O'<<16|'I'<<8|'E' {
		return !x.bad
	}
	x.end = x.numberAt(tail + 8)
	at := x.end
	for left := 64; at < tail && left > 0 && !x.bad; left-- {
		kind, n := x.numberAt(at), x.numberAt(at+4)
		if n > tail-at || kind == 'I'<<24|'E'<<16|'O'<<8|'T' && !x.readBlocks(at+8, n) {
			return false
		}
		at += 8 + n
	}
	return !x.bad && x.end != 0 && at == tail
}

// readBlocks reads extension IEOT, of n bytes, at an offset.
//
//go:norace
func (x *indexScan) readBlocks(at, n uint) bool {
	if x.blocks != 0 || n < 12 || n&7 != 4 || n/8 > indexBlocks || x.numberAt(at) != 1 {
		return false
	}
	for ; x.blocks < n/8; x.blocks++ {
		b := &x.block[x.blocks&(indexBlocks-1)]
		b.offset, b.entries = x.numberAt(at+4+8*x.blocks), x.numberAt(at+8+8*x.blocks)
		if b.entries == 0 {
			return false
		}
	}
	return true
}

// numberAt returns the number of four bytes at an offset of the file.
//
//go:norace
func (x *indexScan) numberAt(at uint) uint {
	var b [4]byte
	if sys(syscall.SYS_PREAD64, uintptr(x.fd), uintptr(unsafe.Pointer(&b[0])), 4, uintptr(at), 0) != 4 {
		x.bad = true
	}
	return uint(b[0])<<24 | uint(b[1])<<16 | uint(b[2])<<8 | uint(b[3])
}

// entry reads an entry, which is the first of a block if begins says so.
//
//go:norace
func (x *indexScan) entry(begins bool) bool {
	start := x.read
	x.number(24)
	x.mode = x.number(4)
	x.number(12)
	x.readID()
	flags := x.number(2)
	if flags&0x4000 != 0 {
		if x.version < 3 {
			return false
		}
		x.number(2)
	}
	// git goes on behind as many bytes as the flags say, and not behind the NUL.
	if !x.entryName(x.version == 4, begins) || x.size != flags&0xfff {
		return false
	}
	for x.version < 4 && (x.read-start)&7 != 0 && !x.bad {
		if x.next() != 0 {
			return false
		}
	}
	return !x.bad
}

// entryName reads the name of an entry, with the NUL behind it. A compressed one that begins a block has nothing of the name before it.
//
//go:norace
func (x *indexScan) entryName(compressed, begins bool) bool {
	keep := uint(0)
	if compressed { // how much of the last name goes: an offset as in gitformat-pack(5)
		c := x.next()
		strip := uint(c & 0x7f)
		for c&0x80 != 0 && !x.bad {
			c = x.next()
			if strip > pathMax {
				return false
			}
			strip = (strip+1)<<7 | uint(c&0x7f)
		}
		if strip > x.size || begins && strip != x.size {
			return false
		}
		keep = x.size - strip
	}
	x.size = keep
	for !x.bad {
		c := x.next()
		if c == 0 {
			return !x.bad
		}
		if x.size >= pathMax-1 {
			return false
		}
		x.name[x.size&(pathMax-1)] = c
		x.size++
	}
	return false
}

// harmlessName reports whether git would add an entry of this name (read-cache.c, verify_path): no component is empty, a dot, two dots,
// or .git in any spelling that a file system takes for it.
//
//go:norace
func (x *indexScan) harmlessName(dir bool) bool {
	end := x.size
	if end == 0 {
		return true // the name is that of an entry of the shared index
	}
	if dir && end > 0 && x.name[(end-1)&(pathMax-1)] == '/' { // a sparse index
		end--
	}
	for at := uint(0); at <= end; {
		to := at
		for to < end && x.name[to&(pathMax-1)] != '/' {
			to++
		}
		if to == at || x.badComponent(at, to) {
			return false
		}
		at = to + 1
	}
	return true
}

//go:norace
func (x *indexScan) badComponent(at, to uint) bool {
	const git, short = ".git", "git~"
	dots := true
	g, t, seen := uint(0), uint(0), uint(0) // letters of the words that were found
	for i := at; i < to; i++ {
		dots = dots && x.name[i&(pathMax-1)] == '.'
		c := x.name[i&(pathMax-1)]
		if c == '\\' {
			return true
		}
		for w := folded(c, x.name[(i+1)&(pathMax-1)], x.name[(i+2)&(pathMax-1)]); w != 0; w >>= 8 {
			if seen == g && g < uint(len(git)) && byte(w) == git[g] {
				g++
			}
			if seen == t && t < uint(len(short)) && byte(w) == short[t] {
				t++
			}
			seen++
			if g == uint(len(git)) && seen > g && byte(w) != ' ' && byte(w) != '.' && byte(w) != ':' {
				g = 0 // .gitignore and its like
			}
			if g == uint(len(git)) && byte(w) == ':' {
				return true
			}
		}
	}
	return dots && to-at <= 2 || g == uint(len(git)) || t == uint(len(short))
}
