package guard

import (
	"syscall"
	"unsafe"
)

// replaceConfig carries out a rename onto a git configuration, which is how git writes one. The tool may still
// hold the source open, so its content could change after any check: a copy of the checked bytes, in a file that
// the tool never had open, takes the source's name and then the target's. It returns 0 or a negative errno.
//
//go:norace
func (s *State) replaceConfig() int {
	a, b := &s.spot[0], &s.spot[1]
	if s.typeOf(0) != syscall.S_IFREG {
		return s.refuse()
	}
	s.place(b)
	r := s.load(0, a)
	if r == 0 {
		r = s.load(1, b)
	}
	if r == -eNOENT {
		s.text[1].n, r = 0, 0
	}
	if r < 0 {
		return r
	}
	if !sameRest(&s.text[0], &s.text[1]) {
		return s.refuse()
	}
	if r = sys(syscall.SYS_UNLINKAT, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), 0, 0, 0); r < 0 {
		return r
	}
	fd := openat(a.dir, &a.name[0], syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if fd < 0 {
		return fd
	}
	r = s.store(fd)
	if r == 0 {
		r = sys(syscall.SYS_FCHMOD, uintptr(fd), uintptr(a.st.Mode&0o777), 0, 0, 0)
	}
	closeFD(fd)
	if r == 0 {
		r = s.renameNow()
	}
	if r < 0 {
		sys(syscall.SYS_UNLINKAT, uintptr(a.dir), uintptr(unsafe.Pointer(&a.name[0])), 0, 0, 0)
	}
	return r
}

// plainConfig reports whether the configuration at sp holds harmless lines alone.
//
//go:norace
func (s *State) plainConfig(sp *spot) bool {
	s.place(sp)
	s.text[1].n = 0
	return s.load(0, sp) == 0 && sameRest(&s.text[0], &s.text[1])
}

// place tells the texts where their configuration stands: how deep below its `.git`.
//
//go:norace
func (s *State) place(sp *spot) {
	depth, modules := uint(0), false
	if s.canonical(sp.dir) > 0 {
		s.m.split()
		for i := s.m.nc; i > 0; i-- {
			at := uint(s.m.off[(i-1)&(compRoom-1)])
			if uint(s.m.off[i&(compRoom-1)])-1-at == 4 && s.m.path[at&(pathRoom-1)] == '.' &&
				lower(s.m.path[(at+1)&(pathRoom-1)]) == 'g' && lower(s.m.path[(at+2)&(pathRoom-1)]) == 'i' {
				depth, modules = s.m.nc-i, i < s.m.nc
				break
			}
		}
	}
	for i := range s.text {
		s.text[i].depth, s.text[i].modules = depth, modules
	}
}

// load reads a regular file of at most 64 KiB into text k; a larger one is refused.
//
//go:norace
func (s *State) load(k int, sp *spot) int {
	t := &s.text[k&1]
	t.n = 0
	fd := openat(sp.dir, &sp.name[0], syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if fd < 0 {
		return fd
	}
	for t.n < textRoom {
		r := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&t.b[t.n&(textRoom-1)])), uintptr(textRoom-t.n), 0, 0)
		if r <= 0 {
			closeFD(fd)
			return r
		}
		t.n += uint(r)
	}
	closeFD(fd)
	return s.refuse()
}

// store writes text 0 to fd.
//
//go:norace
func (s *State) store(fd int) int {
	t := &s.text[0]
	for done := uint(0); done < t.n; {
		r := sys(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&t.b[done&(textRoom-1)])), uintptr(t.n-done), 0, 0)
		if r < 0 {
			return r
		}
		done += uint(r)
	}
	return 0
}
