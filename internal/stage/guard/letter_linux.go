package guard

import (
	"syscall"
	"unsafe"
)

// git writes two protected files by opening them and not by a rename: the `.git` file of a linked worktree or a
// submodule, and a worktree's commondir. What will be written is not known when the file is opened, and once the
// tool has it open it can write anything at any time. So the tool gets something else.
//
// A commondir can only be "../..": the supervisor writes that, and the tool's own words go to /dev/null.
//
// For a .git file the tool gets a pipe. Its end, when the last writer has closed it, is a letter: if it says what git
// would say, the supervisor writes the file. Letters are read before each call is carried out, so that whoever closed
// one and then makes a call finds it delivered; git makes several before it needs the file. A letter that says
// anything else is dropped, and no file appears. What is written is the directory's canonical path, never the tool's
// spelling of it.

const (
	letterRoom  = 16
	letterBytes = 4096
)

type letter struct {
	used bool
	pipe int // its reading end
	dir  int // O_PATH descriptor of the directory that the .git file is for
	n    uint
	b    [letterBytes]byte
}

// openLetter answers an open for writing of a name of kind GitFile or CommonDir, which is no directory.
//
//go:norace
func (s *State) openLetter() int {
	const access, wanted = syscall.O_WRONLY | syscall.O_RDWR, syscall.O_CREAT
	sp := &s.spot[0]
	whole := sp.stat != 0 || s.flags&syscall.O_TRUNC != 0 // nothing of the present content stays
	if sp.hit&hitNames&^(hitGitFile|hitCommon) != 0 || s.flags&access != syscall.O_WRONLY || s.flags&wanted == 0 || !whole || sp.dir < 0 {
		return s.refuse()
	}
	if sp.stat == 0 && sp.st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return s.refuse()
	}
	if sp.hit&hitCommon != 0 {
		s.literal("../..\n")
		if r := s.putFile(sp.dir, &sp.name[0], &s.num[0], 6); r < 0 {
			return r
		}
		s.literal("/dev/null")
		return s.give(s.req.id, openat(atFDCWD, &s.num[0], syscall.O_WRONLY, 0), s.flags)
	}
	for i := range s.letters {
		if l := &s.letters[i]; !l.used {
			return s.newLetter(l)
		}
	}
	return -int(syscall.EAGAIN)
}

//go:norace
func (s *State) newLetter(l *letter) int {
	s.literal(".")
	dir := openat(s.spot[0].dir, &s.num[0], oPath|syscall.O_DIRECTORY, 0)
	if dir < 0 {
		return dir
	}
	if r := sys(syscall.SYS_PIPE2, uintptr(unsafe.Pointer(&s.ends[0])), syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0, 0, 0); r < 0 {
		closeFD(dir)
		return r
	}
	l.used, l.pipe, l.dir, l.n = true, int(s.ends[0]), dir, 0
	r := s.give(s.req.id, int(s.ends[1]), s.flags)
	s.mail++
	if r < 0 {
		s.discard(l)
	}
	return r
}

//go:norace
func (s *State) discard(l *letter) {
	closeFD(l.pipe)
	closeFD(l.dir)
	l.used = false
	s.mail--
}

// deliver reads what has come of the letters, and delivers those that are complete.
//
//go:norace
func (s *State) deliver() {
	for i := 0; i < letterRoom && s.mail > 0; i++ {
		l := &s.letters[i]
		for l.used {
			if l.n >= letterBytes {
				s.discard(l)
				break
			}
			r := sys(syscall.SYS_READ, uintptr(l.pipe), uintptr(unsafe.Pointer(&l.b[l.n&(letterBytes-1)])), uintptr(letterBytes-l.n), 0, 0)
			if r < 0 {
				break
			}
			l.n += uint(r)
			if r == 0 {
				if s.trueLetter(l) {
					s.literal(".git")
					s.putFile(l.dir, &s.num[0], &l.b[0], l.n)
				} else {
					s.refuse()
				}
				s.discard(l)
			}
		}
	}
}

// trueLetter reports whether the letter is "gitdir: " and a directory whose commondir the rules protect: then they
// protect its hooks and configuration too. No link may be on the way, for a link could be bent later.
//
//go:norace
func (s *State) trueLetter(l *letter) bool {
	const head = "gitdir: "
	if l.n <= uint(len(head)) || l.n >= letterBytes || l.b[(l.n-1)&(letterBytes-1)] != '\n' {
		return false
	}
	for i := 0; i < len(head); i++ {
		if l.b[i] != head[i] {
			return false
		}
	}
	for i := uint(0); i < l.n-1; i++ {
		if l.b[i&(letterBytes-1)] < ' ' || l.b[i&(letterBytes-1)] == 0x7f {
			return false
		}
	}
	l.b[(l.n-1)&(letterBytes-1)] = 0
	dir := s.openNoLinks(l.dir, &l.b[len(head)], syscall.O_DIRECTORY)
	l.b[(l.n-1)&(letterBytes-1)] = '\n'
	if dir < 0 {
		return false
	}
	absolute := l.b[len(head)] == '/'
	n := s.canonical(dir)
	closeFD(dir)
	if n <= 0 || s.m.path[0] != '/' {
		return false
	}
	const tail = "/commondir"
	for i := 0; i < len(tail); i++ {
		s.m.path[(n+i)&(pathRoom-1)] = tail[i]
	}
	s.m.n = uint(n) + uint(len(tail))
	s.m.judge()
	if s.m.hit&(hitWhole|hitCommon) == 0 {
		return false
	}
	return s.spell(l, uint(len(head)), uint(n), absolute)
}

// spell replaces what the letter says from byte at on by the n bytes of the canonical path in s.m.path, as a path
// relative to the letter's directory unless absolute is set. The tool's own spelling may lead elsewhere later: by a ".." behind
// a name that becomes a link. path[0] is free, since letters are read before a call's path is.
//
//go:norace
func (s *State) spell(l *letter, at, n uint, absolute bool) bool {
	from := uint(0) // what both paths begin with, up to and without a slash
	if !absolute {
		s.number("", uint(l.dir))
		r := sys(syscall.SYS_READLINKAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.path[0][0])), pathMax, 0)
		if r <= 0 || r >= pathMax || s.path[0][0] != '/' {
			return false
		}
		base := uint(r)
		if base == 1 {
			base = 0 // the root
		}
		same := uint(0)
		for same < base && same < n && s.path[0][same&(pathRoom-1)] == s.m.path[same&(pathRoom-1)] {
			same++
			if (same == base || s.path[0][same&(pathRoom-1)] == '/') && (same == n || s.m.path[same&(pathRoom-1)] == '/') {
				from = same
			}
		}
		for i := from; i < base; i++ {
			if s.path[0][i&(pathRoom-1)] == '/' {
				at = l.add(l.add(l.add(at, '.'), '.'), '/')
			}
		}
		from++ // the slash
		if from >= n {
			return false // the directory itself, or one above it
		}
	}
	for i := from; i < n; i++ {
		c := s.m.path[i&(pathRoom-1)]
		if c < ' ' || c == 0x7f {
			return false
		}
		at = l.add(at, c)
	}
	l.n = l.add(at, '\n')
	return l.n < letterBytes
}

// add puts c at byte at of the letter, and returns the next place.
//
//go:norace
func (l *letter) add(at uint, c byte) uint {
	if at >= letterBytes {
		return letterBytes
	}
	l.b[at&(letterBytes-1)] = c
	return at + 1
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
	return min(r, 0)
}
