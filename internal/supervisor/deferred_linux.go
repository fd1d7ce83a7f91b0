package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// git writes two protected files by opening them and not by a rename: the `.git` file of a linked worktree or a
// submodule, and a worktree's commondir. What will be written is not known when the file is opened, and once the
// tool has it open it can write anything at any time. So the tool gets something else.
//
// A commondir can only be "../..": the supervisor writes that, and the tool's own words go to /dev/null.
//
// For a .git file, a new configuration (libgit2 makes it by an open) and a .gitmodules (git checkout writes it so) the tool gets a
// pipe: a deferred write. When the last writer has closed the pipe, and it says what git would say, the supervisor writes the file.
// Pipes are read before each call is carried out, so that a process that closes one and then makes a call finds the file written;
// git makes several before it needs the file. If the pipe says anything else, no file appears. What is written is the
// directory's canonical path, never the tool's spelling of it.

// deferWrite answers an open for writing of a name of kind GitFile or CommonDir, which is no directory.
//
//go:norace
func (s *State) deferWrite() int {
	const access, wanted = syscall.O_WRONLY | syscall.O_RDWR, syscall.O_CREAT
	sp := &s.resolved[0]
	whole := sp.stat != 0 || s.flags&syscall.O_TRUNC != 0 // nothing of the present content stays
	kind := sp.textKind()
	if sp.hit&hitText == 0 {
		kind = textNone
	}
	others := uint32(hitNames &^ (hitGitFile | hitCommon | hitText))
	if sp.hit&hitConfig != 0 {
		kind, others = textConfig, hitNames&^hitConfig
	}
	if kind == textTodo || kind == textOpts || kind == textIndex || kind == textRerere || sp.hit&others != 0 || s.flags&access != syscall.O_WRONLY || s.flags&wanted == 0 || !whole || sp.dir < 0 {
		return s.refuse(ReasonName)
	}
	if sp.stat == 0 && sp.st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return s.refuse(ReasonName)
	}
	if sp.hit&hitCommon != 0 {
		s.literal("../..\n")
		if r := s.putFile(sp.dir, &sp.name[0], &s.num[0], 6); r < 0 {
			return r
		}
		s.literal("/dev/null")
		return s.give(s.req.id, openat(atFDCWD, &s.num[0], syscall.O_WRONLY, 0), s.flags)
	}
	if kind == textNone && !sp.isName(".git") { // .jj/repo: no words of the tool's are harmless there
		return s.refuse(ReasonName)
	}
	if kind == textNone && s.noNewGit() {
		return s.refuse(ReasonNewGit)
	}
	for i := range s.deferred {
		if l := &s.deferred[i]; !l.used {
			l.kind, l.hit = kind, sp.hit
			if !l.nameAs(sp) {
				return s.refuse(ReasonName)
			}
			s.identify(&l.who)
			return s.newDeferredWrite(l)
		}
	}
	return -int(syscall.EAGAIN)
}

// nameAs takes the name of resolved path sp; false if there is no room for it. A longer one is another spelling, to a file system that
// folds case, of a name that git writes: part of it, or what lies behind it in memory, would be another name.
//
//go:norace
func (l *deferredWrite) nameAs(sp *resolvedPath) bool {
	for n := range l.name {
		if l.name[n] = sp.name[n]; l.name[n] == 0 {
			return true
		}
	}
	return false
}

//go:norace
func (s *State) newDeferredWrite(l *deferredWrite) int {
	s.literal(".")
	dir := openat(s.resolved[0].dir, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
	if dir < 0 {
		return dir
	}
	if r := sys(syscall.SYS_PIPE2, uintptr(unsafe.Pointer(&s.ends[0])), syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0, 0, 0); r < 0 {
		closeFD(dir)
		return r
	}
	l.used, l.pipe, l.dir, l.n = true, int(s.ends[0]), dir, 0
	r := s.give(s.req.id, int(s.ends[1]), s.flags)
	s.deferredCount++
	if r < 0 {
		s.discard(l)
	}
	return r
}

//go:norace
func (s *State) discard(l *deferredWrite) {
	closeFD(l.pipe)
	closeFD(l.dir)
	l.used = false
	s.deferredCount--
}

// finishWrites reads what has come of the deferred writes, and delivers those that are complete.
//
//go:norace
func (s *State) finishWrites() {
	for i := 0; i < deferredRoom && s.deferredCount > 0; i++ {
		l := &s.deferred[i]
		for l.used {
			if l.n >= deferredBytes {
				s.discard(l)
				break
			}
			r := sys(syscall.SYS_READ, uintptr(l.pipe), uintptr(unsafe.Pointer(&l.b[l.n&(deferredBytes-1)])), uintptr(deferredBytes-l.n), 0, 0)
			if r < 0 {
				break
			}
			l.n += uint(r)
			if r == 0 {
				if s.writesWhatGitWould(l) {
					s.putFile(l.dir, &l.name[0], &l.b[0], l.n)
				} else {
					s.Refused++
					s.recordDeferred(l)
				}
				s.discard(l)
			}
		}
	}
}

// writesWhatGitWould reports whether the deferred write may be delivered.
//
//go:norace
func (s *State) writesWhatGitWould(l *deferredWrite) bool {
	switch l.kind {
	case textNone:
		return s.trueGitFile(l)
	case textGitdir:
		return s.trueGitdir(l)
	}
	t := &s.text[0]
	for t.N = 0; t.N < l.n; t.N++ {
		t.B[t.N&(gittext.Room-1)] = l.b[t.N&(deferredBytes-1)]
	}
	switch l.kind {
	case textConfig:
		return s.trueConfig(l)
	case textStrategy:
		return t.HarmlessStrategy()
	case textStrategyOpts:
		return t.HarmlessStrategyOptions()
	}
	return l.kind == textApply && t.HarmlessApply()
}

// trueConfig judges text 0, which is the deferred write, as the configuration that it is to become, and makes the deferred write what may be written.
//
//go:norace
func (s *State) trueConfig(l *deferredWrite) bool {
	sp, t := &s.resolved[0], &s.text[0]
	for i := uint(0); i < uint(len(l.name)); i++ { // copy would call the runtime
		sp.name[i] = l.name[i]
	}
	sp.dir, sp.hit = l.dir, l.hit
	fine := !s.lockedByOther(sp) && s.mayConfigure(sp) == 0
	sp.reset()
	for l.n = 0; l.n < t.N && l.n < deferredBytes; l.n++ {
		l.b[l.n&(deferredBytes-1)] = t.B[l.n&(gittext.Room-1)]
	}
	return fine
}

// trueGitFile reports whether the deferred write is "gitdir: " and a directory in a root, to which no link is on the way; the directory
// may be one that git is about to make. All that is, or will be, a git directory in a root is held as one.
//
//go:norace
func (s *State) trueGitFile(l *deferredWrite) bool {
	const head = "gitdir: "
	if l.n <= uint(len(head)) {
		return false
	}
	for i := 0; i < len(head); i++ {
		if l.b[i] != head[i] {
			return false
		}
	}
	return s.truePath(l, uint(len(head)))
}

// trueGitdir reports whether the deferred write is the path of a .git file, as a linked worktree's gitdir has it. It is written as an
// absolute path.
//
//go:norace
func (s *State) trueGitdir(l *deferredWrite) bool {
	const tail = "/.git\n"
	if l.n < uint(len(tail)) {
		return false
	}
	for i := 0; i < len(tail); i++ {
		if l.b[(l.n-uint(len(tail))+uint(i))&(deferredBytes-1)] != tail[i] {
			return false
		}
	}
	return s.truePath(l, 0)
}

// truePath reports whether the deferred write says, from byte at to its newline, a path in a root without a link on it, and puts the
// canonical one in its place. The last name need not be there.
//
//go:norace
func (s *State) truePath(l *deferredWrite, at uint) bool {
	if l.n >= deferredBytes || l.n < at+2 || l.b[(l.n-1)&(deferredBytes-1)] != '\n' {
		return false
	}
	for i := uint(0); i < l.n-1; i++ {
		if l.b[i&(deferredBytes-1)] < ' ' || l.b[i&(deferredBytes-1)] == 0x7f {
			return false
		}
	}
	absolute := l.b[at&(deferredBytes-1)] == '/'
	n := s.realPath(l, at)
	if n == 0 {
		return false
	}
	s.m.n = n
	s.m.judge()
	s.m.hit |= s.m.byName
	if s.m.floor > s.m.nc {
		return false // in no root
	}
	if l.kind == textNone {
		return s.spellGitFile(l, at, n, absolute)
	}
	return s.spell(l, at, n, true)
}

// holdable reports whether the directory is held as a git directory, or could be.
//
//go:norace
func (s *State) holdable(fd int) bool {
	if shaped(s.keys(fd)) {
		return true
	}
	sp := &s.resolved[0]
	sp.obj = fd
	if s.canonical(fd) > 0 {
		s.m.judge()
		s.m.hit |= s.m.byName
		s.shape(sp, false)
	}
	inside := sp.git.inside && (sp.git.class == gitDir || sp.git.class == gitModules)
	sp.reset()
	return inside || s.conforms(fd, false) == 0
}

// realPath puts the kernel's path of what the deferred write names into s.m.path, and returns its length; 0 if it has none.
//
//go:norace
func (s *State) realPath(l *deferredWrite, at uint) uint {
	end := l.n - 1
	l.b[end&(deferredBytes-1)] = 0
	fd := s.openNoLinks(l.dir, &l.b[at&(deferredBytes-1)], 0)
	l.b[end&(deferredBytes-1)] = '\n'
	if fd >= 0 {
		s.literal("")
		r := lstatat(fd, &s.num[0], &s.st)
		kind := s.st.Mode & syscall.S_IFMT
		if r == 0 && l.kind == textNone && !s.holdable(fd) {
			r = -eACCES
		}
		if r == 0 && l.kind == textNone && !s.countsAsUsers(l, fd, 0, 0) {
			r = -eACCES
		}
		n := s.canonical(fd)
		closeFD(fd)
		if r < 0 || n <= 0 || s.m.path[0] != '/' || (kind != syscall.S_IFDIR) == (l.kind == textNone) {
			return 0
		}
		return uint(n)
	}
	if fd != -eNOENT {
		return 0
	}
	last := end
	for last > at && l.b[(last-1)&(deferredBytes-1)] != '/' {
		last--
	}
	if last == end || last <= at+1 || l.b[last&(deferredBytes-1)] == '.' && (last+1 == end || l.b[(last+1)&(deferredBytes-1)] == '.' && last+2 == end) {
		return 0
	}
	l.b[(last-1)&(deferredBytes-1)] = 0
	fd = s.openNoLinks(l.dir, &l.b[at&(deferredBytes-1)], syscall.O_DIRECTORY)
	l.b[(last-1)&(deferredBytes-1)] = '/'
	if fd < 0 {
		return 0
	}
	fine := l.kind != textNone || s.countsAsUsers(l, fd, last, end)
	r := s.canonical(fd)
	closeFD(fd)
	if r <= 0 || s.m.path[0] != '/' || !fine {
		return 0
	}
	n := uint(r)
	for i := last - 1; i < end; i++ {
		s.m.path[n&(longRoom-1)] = l.b[i&(deferredBytes-1)]
		n++
	}
	return n
}

// countsAsUsers has the git directory that a .git file in a directory of the user's names count as the user's, if the tool has made it, or makes it: its
// index would bring any name into that directory (gitentries_linux.go). It is fd, or will be at the name in fd that stands in the deferred write from
// byte last to end. False: there is an index already, or the record is full.
//
//go:norace
func (s *State) countsAsUsers(l *deferredWrite, fd int, last, end uint) bool {
	if s.record == 0 || s.madeByTool(l.dir) {
		return true
	}
	s.literal("")
	if s.statx(fd, &s.num[0]) < 0 {
		return false
	}
	if end == 0 {
		if s.kindSeen() != slotMade {
			return true
		}
		dev, ino, born := s.devSeen(), s.seen.ino, s.bornSeen()
		s.literal("index")
		return lstatat(fd, &s.num[0], &s.st) == -eNOENT && s.enterMade(slotOld, dev, ino, born, 0)
	}
	name := &s.w.comp
	for i := uint(0); i < uint(len(name)); i++ {
		if name[i] = 0; last+i < end {
			name[i] = l.b[(last+i)&(deferredBytes-1)]
		}
	}
	return s.enterMade(slotName, s.devSeen(), s.seen.ino, nameHash(name[:]), 0)
}

// putFile makes a new file of these bytes in the place of name.
//
//go:norace
func (s *State) putFile(dir int, name, text *byte, size uint) int {
	sys(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(name)), 0, 0, 0)
	fd := openat(dir, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
	if fd < 0 {
		return fd
	}
	r := sys(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(text)), uintptr(size), 0, 0)
	closeFD(fd)
	if r == int(size) {
		return 0
	}
	// A part of it, as on a full disk, would say something else.
	sys(syscall.SYS_UNLINKAT, uintptr(dir), uintptr(unsafe.Pointer(name)), 0, 0, 0)
	if r >= 0 {
		return -int(syscall.EIO)
	}
	return r
}
