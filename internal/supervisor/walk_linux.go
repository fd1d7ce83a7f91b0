package supervisor

import (
	"syscall"
	"unsafe"
)

// findSlow resolves path k by hand, name by name, as the kernel would for the tool: path_resolution(7). The links of
// /proc that depend on who reads them are read for the tool.
//
//go:norace
func (s *State) findSlow(k, start int) int {
	w := &s.w
	w.dir, w.owned, w.links, w.cur, w.pos, w.end = start, false, 0, 0, 0, s.plen[k&1]
	for i := uint(0); i < w.end && i < pathMax; i++ {
		w.b[0][i] = s.path[k&1][i]
	}
	r := walkOn
	for r >= 0 {
		switch r {
		case walkOn:
			r = s.step(k)
		case walkLink:
			r = s.link()
		case walkText:
			r = s.follow()
		case walkSelf:
			r = s.identity()
		case walkMagic:
			r = s.magic(k)
		case walkEnded:
			r = s.ended(k)
		case walkFound:
			r = s.found(k)
		default:
			return 0
		}
	}
	w.leave()
	return r
}

// What a part of the slow walk answers when it did not fail.
const (
	walkOn    = iota // go on with the next component
	walkDone         // the resolved path is complete, and holds the directory
	walkEnded        // the path ended without a name
	walkFound        // the present component is the name
	walkLink         // the present component is the link w.fd
	walkText         // follow it by its text
	walkSelf         // it is /proc/self or /proc/thread-self
	walkMagic        // it leads to an object: the kernel alone can follow it
)

// next copies the next component to w.comp: its length, 0 at the end, or -ENAMETOOLONG.
//
//go:norace
func (w *walk) next() int {
	for w.at(w.pos) == '/' {
		w.pos++
	}
	n := uint(0)
	for c := w.at(w.pos); c != 0 && c != '/'; c = w.at(w.pos) {
		if n >= 255 {
			return -eLONG
		}
		w.comp[n&511] = c
		n++
		w.pos++
	}
	w.comp[n&511] = 0
	p := w.pos
	for w.at(p) == '/' {
		p++
	}
	w.last = w.at(p) == 0
	return int(n)
}

//go:norace
func (w *walk) at(i uint) byte {
	if i >= w.end || i >= walkMax {
		return 0
	}
	return w.b[w.cur&1][i]
}

//go:norace
func (w *walk) leave() {
	if w.owned {
		closeFD(w.dir)
	}
	w.owned = false
}

// move goes on from fd.
//
//go:norace
func (w *walk) move(fd int, owned bool) int {
	if fd < 0 {
		return fd
	}
	w.leave()
	w.dir, w.owned = fd, owned
	return 0
}

// step takes one component.
//
//go:norace
func (s *State) step(k int) int {
	w := &s.w
	size := w.next()
	if size < 0 {
		return size
	}
	if size == 0 {
		return walkEnded
	}
	if w.comp[0] == '.' && (size == 1 || (size == 2 && w.comp[1] == '.')) {
		return w.move(openat(w.dir, &w.comp[0], oPath|syscall.O_DIRECTORY, 0), true)
	}
	if w.last && !s.in[k&1].follow {
		return walkFound
	}
	w.fd = openat(w.dir, &w.comp[0], oPath|syscall.O_NOFOLLOW, 0)
	if w.fd == -eNOENT && w.last {
		return walkFound
	}
	if w.fd < 0 {
		return w.fd
	}
	s.literal("")
	if r := lstatat(w.fd, &s.num[0], &w.st); r < 0 {
		closeFD(w.fd)
		return r
	}
	if w.st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return walkLink
	}
	if w.last {
		closeFD(w.fd)
		return walkFound
	}
	return w.move(w.fd, true)
}

// ended answers for a path that ends without a name: in a link to a directory, in "/" or in a dot.
//
//go:norace
func (s *State) ended(k int) int {
	w := &s.w
	s.literal(".")
	obj := openat(w.dir, &s.num[0], oPath, 0)
	if obj < 0 {
		return obj
	}
	w.leave()
	s.resolved[k&1].obj = obj
	return walkDone
}

// found makes the present component of the present directory the answer.
//
//go:norace
func (s *State) found(k int) int {
	sp, w := &s.resolved[k&1], &s.w
	n := uint(0)
	for ; n < 256 && w.comp[n] != 0; n++ {
		sp.name[n] = w.comp[n]
	}
	if w.at(w.pos) == '/' {
		sp.name[n&511] = '/'
		n++
	}
	sp.name[n&511] = 0
	sp.dir, sp.owned = w.dir, w.owned
	sp.stat = lstatat(sp.dir, &sp.name[0], &sp.st)
	return walkDone
}

// link says how the link w.fd, which is the present component, is to be followed.
//
//go:norace
func (s *State) link() int {
	r := s.linkKind()
	if r != walkText {
		closeFD(s.w.fd)
	}
	return r
}

//go:norace
func (s *State) linkKind() int {
	w := &s.w
	if w.links++; w.links > 40 {
		return -eLOOP
	}
	r := sys(syscall.SYS_FSTATFS, uintptr(w.dir), uintptr(unsafe.Pointer(&w.fsBuf[0])), 0, 0, 0)
	switch {
	case r < 0:
		return r
	case w.fsBuf[10]&stNoSymfollow != 0:
		return -eLOOP
	case w.fsBuf[0] != magicProc:
		return walkText
	}
	w.asked = true
	s.literal("")
	switch r = lstatat(w.dir, &s.num[0], &s.st); {
	case r < 0:
		return r
	case s.st.Ino != 1: // only a procfs's root has links that are text
		return walkMagic
	case w.isComp("self"), w.isComp("thread-self"):
		return walkSelf
	}
	return walkText
}

// follow goes on with the text of the link w.fd.
//
//go:norace
func (s *State) follow() int {
	w := &s.w
	s.literal("")
	r := sys(syscall.SYS_READLINKAT, uintptr(w.fd), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&w.b[(w.cur+1)&1][0])), pathMax, 0)
	closeFD(w.fd)
	switch {
	case r < 0:
		return r
	case r == 0:
		return -eNOENT
	case r >= pathMax:
		return -eLONG
	}
	return w.splice(s.rootDir, uint(r))
}

// splice puts the unread part of the path behind the n bytes of the link's text, which are in the other buffer.
//
//go:norace
func (w *walk) splice(root int, n uint) int {
	other := (w.cur + 1) & 1
	for c := w.at(w.pos); c != 0; c = w.at(w.pos) {
		if n >= walkMax-1 {
			return -eLONG
		}
		w.b[other][n] = c
		n++
		w.pos++
	}
	w.cur, w.pos, w.end = other, 0, n
	if w.at(0) == '/' {
		return w.move(root, false)
	}
	return 0
}

// identity replaces "self" and "thread-self" at the root of a procfs by the numbers of the tool.
//
//go:norace
func (s *State) identity() int {
	pid := s.leader()
	if pid == 0 {
		return -eACCES
	}
	n := s.number("", pid)
	s.w.paste(0, n, &s.num)
	if s.w.isComp("thread-self") {
		m := s.number("/task/", uint(s.req.pid))
		s.w.paste(n, m, &s.num)
		n += m
	}
	return s.w.splice(s.rootDir, n)
}

// paste puts n bytes of b at byte at of the buffer that is not in use.
//
//go:norace
func (w *walk) paste(at, n uint, b *[64]byte) {
	for i := uint(0); i < n && i < 64; i++ {
		w.b[(w.cur+1)&1][(at+i)&127] = b[i]
	}
}

//go:norace
func (w *walk) isComp(word string) bool {
	for i := 0; i < len(word) && i < 32; i++ {
		if w.comp[i] != word[i] {
			return false
		}
	}
	return w.comp[len(word)&31] == 0
}

// magic follows a link below a process's directory in /proc, which leads to an object and not to a path. It follows none
// of a process that is closed to the tool.
//
//go:norace
func (s *State) magic(k int) int {
	w := &s.w
	if n := s.canonical(w.dir); n < 0 {
		return n
	}
	if s.closedProc() {
		return -eACCES
	}
	fd := openat(w.dir, &w.comp[0], oPath, 0)
	if fd < 0 {
		return fd
	}
	if !w.last {
		return w.move(fd, true)
	}
	w.leave()
	s.resolved[k&1].obj = fd
	return walkDone
}
