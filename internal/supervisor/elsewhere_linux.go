package supervisor

import (
	"syscall"
	"unsafe"
)

// The rules speak of paths; Landlock grants what lies below a directory, by whatever path that is reached. A directory with two
// paths could be written by the one of which no rule speaks. There are two ways to come by such a path: a descriptor of another mount
// namespace, which another sandbox has sent (astray); and, without namespaces, a second mount of the directory on the host, or another process that
// renames it (beyond, revealed).

// statx fills s.seen with what a name below dir is, or dir itself: 0 or a negative errno. No file server is asked that need not be: it may not answer.
//
//go:norace
func (s *State) statx(dir int, name *byte) int {
	return sys(sysStatx, uintptr(dir), uintptr(unsafe.Pointer(name)), atNoFollow|atEmptyPath|atDontSync, statxBasic|statxBirth|statxMount, uintptr(unsafe.Pointer(&s.seen)))
}

// astray reports whether the directory of resolved path sp, whose path is in s.m, or the directory or plain file that it stands for, is one of
// another mount namespace to which this path does not lead here; or a file that has lost the name by which the descriptor was opened, and has
// another, which may be protected and which nothing tells. A mount of this namespace is looked at once: its number is no other's while
// it is there. Else resolved path sp goes on with what the path leads to here: the other mount may be writable where the sandbox's is not.
//
//go:norace
func (s *State) astray(sp *resolvedPath) bool {
	fd, c := sp.obj, s.m.nc
	if fd < 0 {
		fd, c = sp.dir, c-1
	}
	s.literal("")
	if s.statx(fd, &s.num[0]) < 0 || c > s.m.nc {
		return true
	}
	kind, ino, dev, mount := uint32(s.seen.mode)&syscall.S_IFMT, s.seen.ino, s.seen.dev, s.seen.mount
	if kind != syscall.S_IFDIR && kind != syscall.S_IFREG || s.seen.nlink == 0 {
		return false
	}
	if s.seen.mask&statxMount == 0 {
		mount = 0 // it is not known
	}
	known := mount != 0 && !s.m.gone(uint(s.m.off[c&(compRoom-1)])-1)
	for i := range s.ownMounts {
		if known && s.ownMounts[i] == mount {
			return false
		}
	}
	own := s.openBy(c)
	s.literal("")
	switch {
	case own < 0 || s.statx(own, &s.num[0]) < 0 || s.seen.ino != ino || s.seen.dev != dev:
		closeFD(own)
		return true
	case mount != 0 && s.seen.mount == mount:
		s.ownMounts[s.mountTurn%mountRoom] = mount
		s.mountTurn++
		closeFD(own)
		return false
	case sp.obj >= 0:
		closeFD(sp.obj)
		sp.obj = own
	default:
		if sp.owned {
			closeFD(sp.dir)
		}
		sp.dir, sp.owned = own, true
	}
	return s.op == opBind // which begins at sp.start
}

// openBy opens, as O_PATH, what the first c components of the path in s.m lead to, without links.
//
//go:norace
func (s *State) openBy(c uint) int {
	if c == 0 {
		return s.openAbove(0)
	}
	dir := s.openAbove(c - 1)
	if dir < 0 {
		return dir
	}
	end := (uint(s.m.off[c&(compRoom-1)]) - 1) & (longRoom - 1)
	was := s.m.path[end]
	s.m.path[end] = 0
	fd := openat(dir, &s.m.path[uint(s.m.off[(c-1)&(compRoom-1)])&(longRoom-1)], oPath|syscall.O_NOFOLLOW, 0)
	s.m.path[end] = was
	closeFD(dir)
	return fd
}

// beyond reports whether the call would change what lies outside of all that the tool may change, where Landlock alone holds the files. What
// changes nothing is left to the kernel: it says that a name is there already, or is not there.
//
//go:norace
func (s *State) beyond() bool {
	const writes = syscall.O_WRONLY | syscall.O_RDWR | syscall.O_TRUNC | syscall.O_CREAT | oTmpfileBit
	switch s.op {
	case opOpen:
		if s.flags&writes == 0 || !s.outside(0) {
			return false
		}
		return !s.exists(0) || s.flags&oTmpfileBit != 0 || s.typeOf(0) == syscall.S_IFREG && s.resolved[0].st.Nlink > 0
	case opMakeDir, opMakeNode, opSymlink, opBind:
		return s.outside(0) && !s.exists(0)
	case opLink:
		return s.outside(1) && !s.exists(1)
	case opUnlink, opTruncate:
		return s.outside(0) && s.exists(0)
	case opRename:
		return s.exists(0) && (s.outside(0) || s.outside(1))
	}
	return false
}

// outside reports whether path k of the call leads to what Rules.Fence keeps.
//
//go:norace
func (s *State) outside(k int) bool {
	return s.m.rb(offFence) != 0 && s.in[k&1].from != fromNothing && !s.resolved[k&1].granted
}

// findRoots takes down which directories the roots are, where a name in them is hidden and no mount hides it: 0 or a negative errno. Without one of
// them what is hidden in it would not be known by another path.
//
//go:norace
func (s *State) findRoots() int {
	if s.m.rb(offFence) == 0 || s.m.rb(offDevices)&devHides == 0 {
		return 0
	}
	s.m.pat = offRecords
	for n := s.m.r16(offRoots); n > 0; n-- {
		size := s.m.r16(s.m.pat + 1)
		for i := uint(0); i < size; i++ {
			s.m.path[i&(longRoom-1)] = s.m.rb(s.m.pat + 3 + i)
		}
		s.m.n = size
		s.m.split()
		fd := s.openBy(s.m.nc)
		if fd < 0 {
			return fd
		}
		s.literal("")
		r := s.statx(fd, &s.num[0])
		closeFD(fd)
		if r < 0 {
			return r
		}
		s.rootIDs[s.rootCount&(MaxEntries-1)] = fileID{s.seen.ino, s.seen.dev}
		s.rootCount++
		s.m.pat += 3 + size
	}
	return 0
}

// revealed reports whether resolved path sp, whose path in s.m is in no root, lies in one all the same: one of the directories above it is
// one.
//
//go:norace
func (s *State) revealed(sp *resolvedPath) bool {
	if s.rootCount == 0 || s.m.granted || s.m.nc == 0 {
		return false
	}
	k := &s.climb
	k.fd, k.own, k.at = -1, false, s.m.nc-1
	if sp.obj < 0 {
		k.fd = sp.dir
	}
	found := false
	for c := s.m.nc; c > 0 && !found; c-- {
		if found = s.climbTo(c-1) < 0 || s.statx(k.fd, s.above(k.at-(c-1), ".")) < 0; found {
			break
		}
		for i := uint(0); i < s.rootCount && !found; i++ {
			root := &s.rootIDs[i&(MaxEntries-1)]
			found = root.ino == s.seen.ino && root.dev == s.seen.dev
		}
	}
	k.leave()
	return found
}
