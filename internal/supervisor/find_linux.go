package supervisor

import (
	"syscall"
)

// find resolves path k of the tool, which begins at its directory descriptor dirfd, to s.resolved[k]: 0 or a
// negative errno. With follow set, a symbolic link as the last name is followed.
//
// One openat2 finds the directory when no link is on the way; then nothing depends on who asks. A link sends
// the path through the slow walk.
//
//go:norace
func (s *State) find(k int) int {
	sp, in := &s.resolved[k&1], &s.in[k&1]
	switch {
	case in.from == fromNothing:
		return 0
	case in.from == fromFD, in.from == fromEmpty && s.plen[k&1] == 0:
		sp.obj = s.toolFD(in.dirfd)
		return min(sp.obj, 0)
	case s.plen[k&1] == 0:
		return -eNOENT
	}
	if s.path[k&1][(s.plen[k&1]-1)&(pathRoom-1)] == '/' {
		in.follow = in.follow || s.onObject(k)
	}
	start := s.rootDir
	if dir := s.sharedMemory(k); dir != -1 {
		if start = dir; start < 0 {
			return start
		}
		sp.start = start
	} else if s.path[k&1][0] != '/' {
		if start = s.startDir(in.dirfd); start < 0 {
			return start
		}
		sp.start = start
	}
	r := s.findFast(k, start)
	if r == -eLOOP {
		sp.leave()
		r = s.findSlow(k, start)
	}
	return r
}

// findFast is the way for a path without links: -ELOOP leads to the slow walk.
//
//go:norace
func (s *State) findFast(k, start int) int {
	sp, p := &s.resolved[k&1], &s.path[k&1]
	end := s.plen[k&1]
	for end > 0 && p[(end-1)&(pathRoom-1)] == '/' {
		end--
	}
	at := end
	for at > 0 && p[(at-1)&(pathRoom-1)] != '/' {
		at--
	}
	size := end - at
	if size == 0 || (p[at&(pathRoom-1)] == '.' && (size == 1 || (size == 2 && p[(at+1)&(pathRoom-1)] == '.'))) {
		sp.obj = s.openNoLinks(start, &p[0], 0)
		return min(sp.obj, 0)
	}
	if size > 255 {
		return -eLONG
	}
	for i := uint(0); i < size; i++ {
		sp.name[i&255] = p[(at+i)&(pathRoom-1)]
	}
	sp.name[size&511] = 0
	if at == 0 {
		sp.dir, sp.owned = start, false
	} else {
		was := p[at&(pathRoom-1)]
		p[at&(pathRoom-1)] = 0
		sp.dir, sp.owned = s.openNoLinks(start, &p[0], syscall.O_DIRECTORY), true
		p[at&(pathRoom-1)] = was
		if sp.dir < 0 {
			return sp.dir
		}
	}
	slash := end < s.plen[k&1]
	if s.in[k&1].follow {
		if sp.stat = lstatat(sp.dir, &sp.name[0], &sp.st); sp.stat == 0 && (sp.st.Mode&syscall.S_IFMT == syscall.S_IFLNK) {
			return -eLOOP
		}
	}
	if slash {
		sp.name[size&511], sp.name[(size+1)&511] = '/', 0
	}
	return 0
}

// onObject reports whether the call works on what path k leads to, and not on the name: then a slash behind the name
// makes a link be followed, whatever the flags say.
//
//go:norace
func (s *State) onObject(k int) bool {
	switch s.op {
	case opOpen, opChmod, opTruncate, opChown, opTimes, opSetAttribute, opRemoveAttribute:
		return true
	}
	return s.op == opLink && k == 0
}

// judge compares the canonical path of resolved path k with the rules: its hit. The path is the kernel's own account of
// the directory, so links, mounts and spellings have no say. It returns 0 or a negative errno.
//
//go:norace
func (s *State) judge(k int) int {
	sp := &s.resolved[k&1]
	if s.in[k&1].from == fromNothing {
		return 0
	}
	n := s.anyPath(max(sp.dir, sp.obj)) // one of them is -1
	if n < 0 {
		return n
	}
	if s.m.path[0] != '/' { // a pipe, a socket, a memfd: it has no name
		sp.granted = s.m.path[0] != '(' // "(unreachable)", in the mounts of others
		if sp.obj < 0 {
			sp.hit = hitLost
		}
		return 0
	}
	if sp.obj < 0 {
		s.m.addName(sp.name[:])
	}
	s.m.judge()
	lost := s.astray(sp) || s.m.floor == ^uint(0) && s.revealed(sp)
	if sp.obj >= 0 && s.m.gone(s.m.n) { // what has no name any more is judged by the one that it had
		s.m.n -= uint(len(goneTail))
		s.m.judge()
	}
	sp.free, sp.whole = s.m.byName != 0 && s.isFree(sp), s.m.whole
	if !sp.free {
		s.m.hit |= s.m.byName
	}
	s.shape(sp, true)
	if lost {
		s.m.hit |= hitLost
	}
	if s.m.floor == ^uint(0) && s.inProc(max(sp.dir, sp.obj)) && s.closedProc() { // no root is in a procfs
		s.m.hit |= hitSelf
	}
	sp.hit, sp.inside, sp.granted = s.m.hit, s.m.floor != ^uint(0), s.m.granted
	return 0
}
