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
		b[(n+i)&511] = tail[i]
	}
	return &b[0]
}

// anyWhere is what readGitFile returns for a file that cannot be read: it may lead through any name.
const anyWhere = ^uint(0)

// readGitFile reads a .git file into text 1, and returns where its path begins; 0: there is none. The tool may have closed one for a while by
// its mode, or that of its directory; one that another user has closed it cannot have written.
//
//go:norace
func (s *State) readGitFile(dir int, path *byte) uint {
	const head = "gitdir:"
	t := &s.text[1]
	t.N = 0
	n := openat(dir, path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if fd := n; fd >= 0 {
		n = sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&t.B[0])), gittext.Room-1, 0, 0)
		closeFD(fd)
	}
	switch {
	case n == -eNOENT, n == -int(syscall.ENOTDIR), n == -eLOOP, n == -eISDIR, n == -eACCES && !s.closedByOwner(dir, path):
		return 0
	case n < 0:
		return anyWhere
	case n <= len(head):
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

// closedByOwner reports whether what keeps a .git file from being read belongs to the supervisor's user, and can be closed by the tool: the file,
// or else its directory. What the policy hides lies on a mount for reading alone.
//
//go:norace
func (s *State) closedByOwner(dir int, path *byte) bool {
	const readOnly = 1 // ST_RDONLY of f_flags, statfs(2)
	fd := openat(dir, path, oPath|syscall.O_NOFOLLOW, 0)
	if b := &s.w.b[0]; fd < 0 && path != &b[0] { // ".git", in dir itself
		fd = dir
	} else if fd < 0 {
		last := uint(0)
		for n := uint(0); n < walkMax && b[n] != 0; n++ {
			if b[n] == '/' {
				last = n
			}
		}
		b[last%walkMax] = 0
		fd = openat(dir, &b[0], oPath|syscall.O_NOFOLLOW, 0)
	}
	s.literal("")
	r := lstatat(fd, &s.num[0], &s.st)
	if r == 0 {
		r = sys(syscall.SYS_FSTATFS, uintptr(fd), uintptr(unsafe.Pointer(&s.w.fsBuf[0])), 0, 0, 0)
	}
	if fd != dir {
		closeFD(fd)
	}
	return r < 0 || s.w.fsBuf[10]&readOnly == 0 && int(s.st.Uid) == sys(syscall.SYS_GETEUID, 0, 0, 0, 0, 0)
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
	if i == 0 || i == anyWhere {
		return i != 0
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
