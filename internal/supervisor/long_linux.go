package supervisor

import (
	"syscall"
	"unsafe"
)

// A directory can lie deeper than PATH_MAX: by mkdir and chdir, again and again. readlink(2) of a descriptor does not tell its path then
// (do_proc_readlink in fs/proc/base.c has one page for it), and neither does getcwd(2). /proc/self/maps does, of what is mapped:
// a line there can have any length (seq_path in fs/seq_file.c). So a nameless file in the directory is mapped (O_TMPFILE), or the
// file itself where the object is one, and its line read: the kernel's own path, taken at one moment, as otherwise. Where
// no such file can be made, in a directory that is not the tool's to write or on a file system without them, and for a path of more
// than some 64,000 bytes or 8,000 directories, the call fails with ENAMETOOLONG.

// anyPath is canonical for a path of any length.
//
//go:norace
func (s *State) anyPath(fd int) int {
	n := s.canonical(fd)
	if n == -eLONG {
		n = s.longPath(fd)
	}
	return n
}

// longPath reads the path of a descriptor into s.m: its length, or a negative errno.
//
//go:norace
func (s *State) longPath(fd int) int {
	const nameless = oTmpfileBit | syscall.O_DIRECTORY | syscall.O_EXCL | syscall.O_RDWR
	s.literal("")
	if r := lstatat(fd, &s.num[0], &s.st); r < 0 {
		return r
	}
	file, dir := -eLONG, s.st.Mode&syscall.S_IFMT == syscall.S_IFDIR
	switch {
	case dir:
		s.literal(".")
		file = openat(fd, &s.num[0], nameless, 0o600)
	case s.st.Mode&syscall.S_IFMT == syscall.S_IFREG:
		file = s.reopen(fd, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if file < 0 {
		return -eLONG
	}
	at := sys(syscall.SYS_MMAP, 0, mapsBytes, 0, syscall.MAP_PRIVATE, uintptr(file)) // PROT_NONE, from the file's beginning: see sys
	n := -eLONG
	if at > 0 {
		n = s.mappedPath(uint(at))
		sys(syscall.SYS_MUNMAP, uintptr(at), mapsBytes, 0, 0, 0)
	}
	closeFD(file)
	if n > 0 && dir {
		n = s.withoutName(uint(n))
	}
	if n < 0 || n > longMax {
		return -eLONG
	}
	s.m.n = uint(n)
	if s.m.split(); s.m.nc > compRoom-8 {
		return -eLONG
	}
	return n
}

// mappedPath reads the path of what is mapped at the address: its length in s.m.path, or a negative errno. A newline in a name is
// written as a backslash and three digits, and a backslash as it is: what has one is not told.
//
//go:norace
func (s *State) mappedPath(address uint) int {
	c := &s.maps
	s.literal("self/maps")
	if c.fd = openat(s.procRoot, &s.num[0], syscall.O_RDONLY, 0); c.fd < 0 {
		return -eLONG
	}
	c.at, c.n = 0, 0
	digits := c.wanted(address)
	n := -eLONG
	for found := false; !found; {
		b, same := byte(0), true
		for i := uint(0); i < digits && same; i++ { // the line's beginning
			b = c.next()
			same = b == c.want[i&31]
		}
		found = same
		for b != '\n' && b != 0 && (!found || b != '/') {
			b = c.next()
		}
		if b == 0 {
			break
		}
		if found && b == '/' {
			n = s.pathLine()
		}
	}
	closeFD(c.fd)
	return n
}

// pathLine reads the line on, behind the first slash of a path.
//
//go:norace
func (s *State) pathLine() int {
	n := uint(1)
	s.m.path[0] = '/'
	for n <= longMax {
		switch b := s.maps.next(); b {
		case '\n':
			return int(n)
		case 0, '\\':
			return -eLONG
		default:
			s.m.path[n&(longRoom-1)] = b
			n++
		}
	}
	return -eLONG
}

// wanted makes c.want the address as a line begins with it, a dash behind it: its length.
//
//go:norace
func (c *mapsScan) wanted(address uint) uint {
	digits := uint(8)
	for digits < 16 && address>>(4*digits) != 0 {
		digits++
	}
	for i := uint(0); i < digits; i++ {
		d := byte(address>>(4*(digits-1-i))) & 15
		if d += '0'; d > '9' {
			d += 'a' - '9' - 1
		}
		c.want[i&31] = d
	}
	c.want[digits&31] = '-'
	return digits + 1
}

// next returns the next byte, 0 at the end.
//
//go:norace
func (c *mapsScan) next() byte {
	if c.at >= c.n {
		r := sys(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&c.b[0])), mapsBytes, 0, 0)
		if r <= 0 {
			return 0
		}
		c.at, c.n = 0, uint(r)
	}
	c.at++
	return c.b[(c.at-1)&(mapsBytes-1)]
}

// withoutName takes the name of a nameless file ("#1234 (deleted)", d_mark_tmpfile in fs/dcache.c) from the n bytes of a path: its length,
// or a negative errno.
//
//go:norace
func (s *State) withoutName(n uint) int {
	for n > 1 && s.m.path[(n-1)&(longRoom-1)] != '/' {
		n--
	}
	if n < 2 || s.m.path[n&(longRoom-1)] != '#' {
		return -eLONG
	}
	return int(n - 1)
}
