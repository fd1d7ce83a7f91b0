package supervisor

import (
	"syscall"
	"unsafe"
)

// The record of what the tool has made. A protected name is free where each directory from that in which the name begins down to the
// object's own is in the record, and the object itself, if it is a directory: see "What the tool has made" in doc.go. All supervisors
// that share the record write it, under a lock on its file, and read it without.

// ShareMade gives the supervisor the record, MadeBytes at address, and the descriptor of its file, which the tool must not have.
//
//go:norace
func ShareMade(s *State, address uintptr, fd int) { s.record, s.recordFD = address, fd }

//go:norace
//go:nocheckptr
func (s *State) recorded() *madeTable { return *(**madeTable)(unsafe.Pointer(&s.record)) }

// find returns the slot of an entry, of a name if key is its hash; nil: there is none.
//
//go:norace
func (t *madeTable) find(dev uint32, ino, key uint64, name bool) *madeSlot {
	at := slotOf(dev, ino, key, name)
	for i := uint64(0); i < madeWindow; i++ {
		e := &t.slot[(at+i)&(madeSlots-1)]
		switch kind := e.kind; {
		case kind == slotNone:
			return nil
		case kind != slotGone && (kind == slotName) == name && e.ino == ino && e.dev == dev && (!name || e.key == key):
			return e
		}
	}
	return nil
}

// slotOf returns the first slot for an entry. A directory has one entry, whatever its time of birth.
//
//go:norace
func slotOf(dev uint32, ino, key uint64, name bool) uint64 {
	h := ino ^ uint64(dev)<<32
	if name {
		h ^= key
	}
	return (h ^ h>>32) * 0x9e3779b97f4a7c15 >> (64 - madeBits)
}

// kindSeen returns what the record says of the directory of which s.seen tells. One whose time of birth is another than in the record has its
// number from one that is gone.
//
//go:norace
func (s *State) kindSeen() uint32 {
	if s.record == 0 || s.seen.mask&statxBirth == 0 || uint32(s.seen.mode)&syscall.S_IFMT != syscall.S_IFDIR {
		return slotNone
	}
	if e := s.recorded().find(s.devSeen(), s.seen.ino, 0, false); e != nil && e.key == s.bornSeen() {
		return e.kind
	}
	return slotNone
}

//go:norace
func (s *State) devSeen() uint32 { return s.seen.dev[0]<<20 | s.seen.dev[1] }

// whoSeen tells a directory from others that were born at the same time: what one mkdir -p or checkout makes often is.
//
//go:norace
func (s *State) whoSeen() uint64 { return s.bornSeen() ^ s.seen.ino*0x9e3779b97f4a7c15 }

//go:norace
func (s *State) bornSeen() uint64 { return s.seen.birth[0]<<30 | s.seen.birth[1]&(1<<30-1) }

// enterMade writes an entry, in the place of one of the same directory or name. False: it does not fit, or the record is locked. Where what must be kept
// does not fit, every name counts as kept from then on.
//
//go:norace
func (s *State) enterMade(kind, dev uint32, ino, key, who uint64) bool {
	if !s.lockMade(true) {
		return false
	}
	t := s.recorded()
	e := t.find(dev, ino, key, kind == slotName)
	at := slotOf(dev, ino, key, kind == slotName)
	for i := uint64(0); i < madeWindow && e == nil; i++ {
		if f := &t.slot[(at+i)&(madeSlots-1)]; f.kind <= slotGone {
			e = f
		}
	}
	fits := e != nil && (kind != slotMade || e.kind == slotMade || t.made < madeMost)
	if fits {
		if t.made -= isKind(e.kind, slotMade); kind != slotMade {
			t.olds++
		}
		e.kind = slotGone
		e.dev, e.ino, e.key, e.who = dev, ino, key, who
		e.kind = kind
		t.made += isKind(kind, slotMade)
	} else if kind != slotMade {
		t.full, fits = 1, true
	}
	s.lockMade(false)
	return fits
}

//go:norace
func isKind(kind, is uint32) uint32 {
	if kind == is {
		return 1
	}
	return 0
}

// forgetMade takes the directory of a number out of the record.
//
//go:norace
func (s *State) forgetMade(dev uint32, ino uint64) {
	if !s.lockMade(true) {
		return // a number with another time of birth counts as no entry
	}
	t := s.recorded()
	if e := t.find(dev, ino, 0, false); e != nil {
		t.made -= isKind(e.kind, slotMade)
		e.kind = slotGone
	}
	s.lockMade(false)
}

// lockMade takes or leaves the record's lock. Who holds it may be frozen in a pause of its session: after a moment it counts as full.
//
//go:norace
func (s *State) lockMade(take bool) bool {
	const tries, unlock = 50, 2
	for i := 0; ; i++ {
		s.lock = [4]uint64{unlock} // struct flock, of a whole file
		if take {
			s.lock[0] = syscall.F_WRLCK
		}
		r := sys(syscall.SYS_FCNTL, uintptr(s.recordFD), syscall.F_SETLK, uintptr(unsafe.Pointer(&s.lock)), 0, 0)
		if r >= 0 || !take || i == tries {
			return r >= 0
		}
		s.pause = timespec{0, 1e6}
		sys(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&s.pause)), 0, 0, 0, 0)
	}
}

// isFree reports whether the names of m.byName are free at the path in s.m, which is resolved path sp's. The tops of roots are always held, and those of Root.Home whole.
//
//go:norace
func (s *State) isFree(sp *resolvedPath) bool {
	m, k := &s.m, &s.climb
	if s.record == 0 || m.isHome(m.base) || m.gone(m.n) || m.nc >= compRoom {
		return false
	}
	k.fd, k.own, k.at = sp.dir, false, m.nc-1
	if sp.obj < 0 {
		if s.statx(sp.dir, &sp.name[0]) == 0 && uint32(s.seen.mode)&syscall.S_IFMT == syscall.S_IFDIR && s.kindSeen() != slotMade {
			return false
		}
	} else {
		s.literal("")
		if s.statx(sp.obj, &s.num[0]) < 0 {
			return false
		}
		if k.fd, k.at = sp.obj, m.nc; uint32(s.seen.mode)&syscall.S_IFMT != syscall.S_IFDIR {
			ino, dev := s.seen.ino, s.seen.dev
			k.fd, k.own, k.at = s.openAbove(m.nc-1), true, m.nc-1
			m.path[m.n&(longRoom-1)] = 0
			if k.fd < 0 || s.statx(k.fd, &m.path[uint(m.off[(m.nc-1)&(compRoom-1)])&(longRoom-1)]) < 0 || s.seen.ino != ino || s.seen.dev != dev {
				k.leave()
				return false
			}
		}
	}
	free := true
	for c := k.at; free; c-- {
		free = s.climbTo(c) == 0 && s.statx(k.fd, s.above(k.at-c, ".")) == 0 && s.kindSeen() == slotMade
		if c == m.base {
			break
		}
	}
	k.leave()
	return free
}

// isHome reports whether the first c components of the path are a root, or lie in one of Root.Home.
//
//go:norace
func (m *matcher) isHome(c uint) bool {
	p, top := uint(offRecords), false
	for n := m.r16(offRoots); n > 0 && !top; n-- {
		size, comps := m.r16(p+1), uint(0)
		for i := uint(0); i < size; i++ {
			if m.rb(p+3+i) == '/' {
				comps++
			}
		}
		top = (comps == c || m.rb(p)&2 != 0) && m.under(p+3, size)
		p += 3 + size
	}
	return top
}

// beforeMade notes the time, by the clock of the file systems' own.
//
//go:norace
func (s *State) beforeMade() {
	const realtimeCoarse = 5
	if s.record != 0 && s.resolved[0].inside {
		sys(syscall.SYS_CLOCK_GETTIME, realtimeCoarse, uintptr(unsafe.Pointer(&s.since)), 0, 0, 0)
	}
}

// afterMade puts the directory that has just been made at resolved path 0 into the record: 0, or the errno for which it was removed. Another
// sandbox may have put one of the user's in its place meanwhile: that is older, or, if its file system copies it for the rename, was written before it
// was born.
//
//go:norace
func (s *State) afterMade() int {
	sp := &s.resolved[0]
	if s.record == 0 || !sp.inside {
		return 0
	}
	old := s.isOld(sp) // another session may have taken the user's directory away since the call began
	if s.statx(sp.dir, &sp.name[0]) < 0 || s.seen.mask&statxBirth == 0 || uint32(s.seen.mode)&syscall.S_IFMT != syscall.S_IFDIR {
		return 0
	}
	sec, nsec := s.seen.birth[0], s.seen.birth[1]&(1<<32-1)
	kind := uint32(slotOld)
	if !old {
		kind = slotMade
		if sec < uint64(s.since.sec) || sec == uint64(s.since.sec) && nsec < uint64(s.since.nsec) || sec != s.seen.wrote[0] || nsec != s.seen.wrote[1]&(1<<32-1) {
			return 0
		}
	}
	if !s.enterMade(kind, s.devSeen(), s.seen.ino, s.bornSeen(), 0) && old {
		sys(syscall.SYS_UNLINKAT, uintptr(sp.dir), uintptr(unsafe.Pointer(&sp.name[0])), atRemoveDir, 0, 0)
		return s.refuse(ReasonPlace)
	}
	return 0
}

// isOld reports whether a directory or link of the user's has been at resolved path sp, or around it, or would not fit into the record. s.oldWho is then whoSeen of the
// directory that had the name last.
//
//go:norace
func (s *State) isOld(sp *resolvedPath) bool {
	s.oldWho = 0
	t := s.recorded()
	if t.full != 0 || t.olds == 0 || sp.dir < 0 {
		return t.full != 0
	}
	s.literal("")
	if s.statx(sp.dir, &s.num[0]) < 0 || s.kindSeen() == slotOld {
		return true
	}
	e := t.find(s.devSeen(), s.seen.ino, nameHash(sp.name[:]), true)
	if e == nil {
		return false
	}
	s.oldWho = e.who
	return true
}

// nameHash is FNV-1a of a name, as a file system that folds case takes it.
//
//go:norace
func nameHash(name []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < 256 && len(name) > 2 && name[0] != 0 && name[0] != '/'; i++ {
		for w := folded(name[0], name[1], name[2]); w != 0; w >>= 8 {
			h = (h ^ uint64(w&0xff)) * 0x100000001b3
		}
		name = name[1:]
	}
	return h
}

// leaving notes that what is at resolved path k, if it is a directory or link that the tool has not made, will be there no more: 0 or a
// negative errno. A directory of the tool's that is removed leaves the record.
//
//go:norace
func (s *State) leaving(k int) int {
	sp := &s.resolved[k&1]
	if s.record == 0 || !sp.inside || sp.dir < 0 || !s.exists(k) {
		return 0
	}
	kind, who := sp.st.Mode&syscall.S_IFMT, uint64(0)
	if kind == syscall.S_IFDIR {
		if s.statx(sp.dir, &sp.name[0]) < 0 || s.kindSeen() != slotNone {
			return 0
		}
		who = s.whoSeen()
	} else if kind != syscall.S_IFLNK {
		return 0
	}
	s.literal("")
	if s.statx(sp.dir, &s.num[0]) < 0 || s.seen.mask&statxBirth == 0 {
		return 0
	}
	if in := s.kindSeen(); in == slotOld || in == slotMade && kind == syscall.S_IFLNK {
		return 0
	}
	if !s.enterMade(slotName, s.devSeen(), s.seen.ino, nameHash(sp.name[:]), who) {
		return s.refuseAt(k, ReasonPlace)
	}
	return 0
}

// arriving decides whether what is at resolved path k may come to the name of l. Where a directory of the user's has been no other comes but one
// in which nothing is free: EXDEV, on which mv makes it anew. It is at resolved path now, k or l: another session may have taken the
// user's directory away between the first look and the rename.
//
//go:norace
func (s *State) arriving(k, l, now int) int {
	a, b := &s.resolved[now&1], &s.resolved[l&1]
	if s.record == 0 || !b.inside {
		return 0
	}
	switch s.typeOf(k) {
	case syscall.S_IFDIR:
		if !s.isOld(b) {
			return 0
		}
		who := s.oldWho
		if s.statx(a.dir, &a.name[0]) < 0 {
			return -int(syscall.EXDEV)
		}
		if in := s.kindSeen(); in == slotOld || in == slotNone && who != 0 && who == s.whoSeen() {
			return 0
		}
		return -int(syscall.EXDEV)
	case syscall.S_IFLNK:
		if !s.isOld(b) {
			return 0
		}
		n := sys(syscall.SYS_READLINKAT, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), uintptr(unsafe.Pointer(&s.w.b[1][0])), pathMax, 0)
		if n < 0 {
			return n
		}
		s.w.b[1][min(n, pathMax)] = 0
		return s.mayLead(l)
	}
	return 0
}

// mayLead decides whether a link whose text is path 1 of symlink(2), or else in s.w.b[1], may stand at resolved path l, where a directory or link of the user's has been: it leads to
// what the tool has not made, by directories that it has not made. Where it leads nowhere yet, or to a file, no directory of the
// tool's will come.
//
//go:norace
func (s *State) mayLead(l int) int {
	b, i := &s.w.b[1], uint(0)
	for j := uint(0); s.op == opSymlink && j <= s.plen[1] && j < pathMax; j++ {
		b[j] = s.path[1][j&(pathRoom-1)]
	}
	s.literal(".")
	dir := openat(s.resolved[l&1].dir, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
	if b[0] == '/' {
		closeFD(dir)
		s.literal("/")
		dir = openat(atFDCWD, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
	}
	links := 0
	for down := false; dir >= 0; {
		for b[i&(2*pathMax-1)] == '/' {
			i++
		}
		n := uint(0)
		for c := b[i&(2*pathMax-1)]; n < 255 && c != 0 && c != '/'; c = b[i&(2*pathMax-1)] {
			s.w.comp[n&511] = c
			n++
			i++
		}
		for j := uint(0); j < 3; j++ {
			s.w.comp[(n+j)&511] = 0
		}
		up := n == 2 && s.w.comp[0] == '.' && s.w.comp[1] == '.'
		switch {
		case n == 0:
			closeFD(dir)
			return 0
		case n == 1 && s.w.comp[0] == '.':
			continue
		case up && down, n >= 255:
			closeFD(dir)
			return s.refuseAt(l, ReasonPlace)
		}
		down = !up
		r := s.statx(dir, &s.w.comp[0])
		kind := uint32(s.seen.mode) & syscall.S_IFMT
		if r == 0 && kind == syscall.S_IFDIR {
			if s.kindSeen() == slotMade {
				closeFD(dir)
				return s.refuseAt(l, ReasonPlace)
			}
			next := openat(dir, &s.w.comp[0], oPath|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
			closeFD(dir)
			dir = next
			continue
		}
		in := s.canonical(dir)
		if s.m.addName(s.w.comp[:]); in > 0 {
			s.m.judge()
		}
		ok := in > 0 && s.m.floor == ^uint(0) && !s.inProc(dir) // in no root
		last := true
		for n = i; b[n&(2*pathMax-1)] != 0; n++ {
			up = up || b[n&(2*pathMax-1)] == '.' && b[(n+1)&(2*pathMax-1)] == '.'
			last = last && b[n&(2*pathMax-1)] == '/'
		}
		linked := r == 0 && kind == syscall.S_IFLNK && last && links < 8
		if !ok && !up && (r == -eNOENT || r == 0 && kind != syscall.S_IFLNK || linked) {
			s.literal("")
			ok = s.statx(dir, &s.num[0]) == 0 && (s.seen.mask&statxBirth == 0 || s.enterMade(slotName, s.devSeen(), s.seen.ino, nameHash(s.w.comp[:]), 0))
			if ok && linked { // another link in its place is judged as this one is; where this one leads is looked at now
				links++
				if size := sys(syscall.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&s.w.comp[0])), uintptr(unsafe.Pointer(&b[0])), pathMax-1, 0); size > 0 {
					b[uint(size)&(2*pathMax-1)] = 0
					if i, down = 0, false; b[0] == '/' {
						closeFD(dir)
						s.literal("/")
						dir = openat(atFDCWD, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
					}
					continue
				}
				ok = false
			}
		}
		closeFD(dir)
		if !ok {
			return s.refuseAt(l, ReasonPlace)
		}
		return 0
	}
	return dir
}

// noteFree notes the protected names that the call in hand has made or written in directories of the tool's. The path in s.m is overwritten.
//
//go:norace
func (s *State) noteFree() {
	k := 0
	switch s.op {
	case opOpen:
		if s.flags&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC|syscall.O_CREAT) == 0 {
			return
		}
	case opRename, opLink:
		k = 1
	case opMakeDir, opMakeNode, opSymlink, opTruncate, opBind:
	default:
		return
	}
	sp := &s.resolved[k&1]
	if s.denials == 0 || !sp.free || sp.whole == ^uint(0) || s.pathOf(sp) < 0 {
		return
	}
	s.m.split()
	if sp.whole > s.m.nc {
		return
	}
	n := uint(s.m.off[sp.whole&(compRoom-1)]) - 1
	s.noteName(&s.table().names, n)
}

// noteName enters the first n bytes of the path in s.m, unless they are there.
//
//go:norace
func (s *State) noteName(t *nameTable, n uint) {
	h := uint64(0xcbf29ce484222325)
	for i := uint(0); i < n; i++ {
		h = (h ^ uint64(s.m.path[i&(longRoom-1)])) * 0x100000001b3
	}
	used := t.used
	for i := uint32(0); i < used && i < NameRoom; i++ {
		if t.hash[i] == h {
			return
		}
	}
	if used >= NameRoom {
		t.beyond++
		return
	}
	for i := uint(0); i < n && i < DenialPathRoom; i++ {
		t.path[used&(NameRoom-1)][i] = s.m.path[i&(longRoom-1)]
	}
	t.hash[used&(NameRoom-1)], t.size[used&(NameRoom-1)] = h, uint16(min(n, DenialPathRoom))
	t.used++
}
