package supervisor

import (
	"syscall"
	"unsafe"
)

// decode says in State what the call in hand is: 0, or a negative errno.
//
//go:norace
func (s *State) decode() int {
	a := &s.req.args
	s.in[0].from, s.in[1].from = fromNothing, fromNothing
	switch s.req.nr {
	case syscall.SYS_OPENAT:
		return s.isOpen(a[0], a[1], a[2], a[3])
	case nrOpen:
		return s.isOpen(cwd, a[0], a[1], a[2])
	case nrCreat:
		return s.isOpen(cwd, a[0], syscall.O_CREAT|syscall.O_WRONLY|syscall.O_TRUNC, a[1])
	case syscall.SYS_MKDIRAT:
		return s.isName(opMakeDir, a[0], a[1], a[2], 0)
	case nrMkdir:
		return s.isName(opMakeDir, cwd, a[0], a[1], 0)
	case syscall.SYS_MKNODAT:
		return s.isName(opMakeNode, a[0], a[1], a[2], a[3])
	case nrMknod:
		return s.isName(opMakeNode, cwd, a[0], a[1], a[2])
	case syscall.SYS_UNLINKAT:
		return s.isName(opUnlink, a[0], a[1], a[2], 0)
	case nrUnlink:
		return s.isName(opUnlink, cwd, a[0], 0, 0)
	case nrRmdir:
		return s.isName(opUnlink, cwd, a[0], atRemoveDir, 0)
	case syscall.SYS_SYMLINKAT:
		s.isName(opSymlink, a[1], a[2], 0, 0)
		return s.readPath(1, a[0])
	case nrSymlink:
		s.isName(opSymlink, cwd, a[1], 0, 0)
		return s.readPath(1, a[0])
	}
	return s.decodeMore()
}

//go:norace
func (s *State) decodeMore() int {
	a := &s.req.args
	switch s.req.nr {
	case sysRename:
		return s.isPair(opRename, a[0], a[1], a[2], a[3], a[4])
	case nrRenameat:
		return s.isPair(opRename, a[0], a[1], a[2], a[3], 0)
	case nrRename:
		return s.isPair(opRename, cwd, a[0], cwd, a[1], 0)
	case syscall.SYS_LINKAT:
		return s.isPair(opLink, a[0], a[1], a[2], a[3], a[4])
	case nrLink:
		return s.isPair(opLink, cwd, a[0], cwd, a[1], 0)
	case syscall.SYS_FCHMODAT:
		return s.isChmod(a[0], a[1], a[2], 0)
	case nrFchmodat2:
		return s.isChmod(a[0], a[1], a[2], a[3])
	case nrChmod:
		return s.isChmod(cwd, a[0], a[1], 0)
	case syscall.SYS_FCHMOD:
		s.isChmod(a[0], 0, a[1], 0)
		s.in[0].from = fromFD
		return 0
	case syscall.SYS_TRUNCATE:
		s.isName(opTruncate, cwd, a[0], a[1], 0)
		s.in[0].follow = true
		return 0
	case syscall.SYS_BIND:
		return s.isBind(a[0], a[1], a[2])
	case syscall.SYS_SOCKET:
		return s.isSocket(a[0], a[1], a[2])
	case syscall.SYS_LISTEN:
		s.op, s.flags, s.mode = opListen, int(int32(a[0])), int(int32(a[1]))
		return 0
	case syscall.SYS_CONNECT:
		return s.isConnect(a[0], a[1], a[2])
	case syscall.SYS_PTRACE:
		s.op = opTrace
		return 0
	}
	return s.decodeAttribute()
}

//go:norace
func (s *State) isOpen(dirfd, addr, flags, mode uint64) int {
	const excl = syscall.O_CREAT | syscall.O_EXCL
	s.op, s.flags, s.mode = opOpen, int(int32(flags)), int(mode)&^setIDs
	if mode&setIDs != 0 && s.flags&syscall.O_CREAT != 0 {
		s.left = ReasonSetID
	}
	s.in[0] = input{int(int32(dirfd)), addr, fromMemory, s.flags&syscall.O_NOFOLLOW == 0 && s.flags&excl != excl}
	return 0
}

//go:norace
func (s *State) isName(op uint8, dirfd, addr, mode, dev uint64) int {
	s.op, s.mode, s.dev = op, int(mode), int(dev)
	if op == opMakeNode {
		s.leaveOut(s.mode&setIDs, ReasonSetID)
	}
	s.in[0] = input{int(int32(dirfd)), addr, fromMemory, false}
	return 0
}

//go:norace
func (s *State) isPair(op uint8, fd, addr, fd2, addr2, flags uint64) int {
	s.op, s.flags = op, int(int32(flags))
	s.in[0] = input{int(int32(fd)), addr, fromMemory, false}
	s.in[1] = input{int(int32(fd2)), addr2, fromMemory, false}
	if op == opLink {
		s.in[0].follow = s.flags&atFollow != 0
		if s.flags&atEmptyPath != 0 {
			s.in[0].from = fromEmpty
		}
		if s.flags&^(atFollow|atEmptyPath) != 0 {
			return -eINVAL
		}
	} else if s.flags&^(renameNoReplace|renameExchange) != 0 {
		return -eINVAL // RENAME_WHITEOUT makes a device
	}
	return 0
}

//go:norace
func (s *State) isChmod(dirfd, addr, mode, flags uint64) int {
	s.op, s.mode, s.flags = opChmod, int(uint32(mode)), int(int32(flags))
	s.in[0] = input{int(int32(dirfd)), addr, fromMemory, s.flags&atNoFollow == 0}
	if s.flags&atEmptyPath != 0 {
		s.in[0].from = fromEmpty
	}
	if s.flags&^(atNoFollow|atEmptyPath) != 0 {
		return -eINVAL
	}
	return 0
}

// addressRoom holds a struct sockaddr_storage.
const addressRoom = 128

// isBind reads the address to path 1 and, if it is a path, that to path 0.
//
//go:norace
func (s *State) isBind(fd, addr, size uint64) int {
	s.op, s.flags, s.mode = opBind, int(int32(fd)), int(uint32(size))
	if s.mode > addressRoom {
		return -eINVAL
	}
	for i := uint(0); i <= addressRoom; i++ {
		s.path[1][i] = 0
	}
	if s.mode == 0 {
		return 0
	}
	if r := s.readMem(unsafe.Pointer(&s.path[1][0]), addr, uint(s.mode)); r < 0 {
		return r
	}
	s.isLocal(false)
	return 0
}

// read brings path k from the tool's memory.
//
//go:norace
func (s *State) read(k int) int {
	in := &s.in[k&1]
	if in.from == fromMemory || in.from == fromEmpty {
		return s.readPath(k, in.addr)
	}
	return 0
}

// isLocal takes the address in path 1, of UNIX, and makes a path in it path 0 of the call. It reports whether the address is of UNIX.
//
//go:norace
func (s *State) isLocal(follow bool) bool {
	if s.path[1][0] != syscall.AF_UNIX || s.path[1][1] != 0 || s.mode <= unixPath {
		return false
	}
	n := uint(0)
	for ; n < addressRoom && s.path[1][n+unixPath] != 0; n++ {
		s.path[0][n] = s.path[1][n+unixPath]
	}
	s.path[0][n&(pathRoom-1)] = 0
	if n > 0 {
		s.plen[0] = n
		s.w.asked = false
		s.in[0] = input{atFDCWD, 0, fromBuffer, follow}
	}
	return true
}
