package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// Extended attributes (xattr(7)). Reading and listing them is not stopped. Of what sets and removes them only attributes of
// users pass, which programs keep for themselves: an ACL (system.posix_acl_access) is a mode, security.* and trusted.* are
// the system's. Attributes user.overlay.* are refused as overlayfs itself does: the kernel obeys them where the directory is
// a layer that was mounted with userxattr (Documentation/filesystems/overlayfs.rst). setxattrat(2) and
// removexattrat(2), of Linux 6.13, have their arguments in memory and are answered by ENOSYS.

const (
	nameMax   = 255          // XATTR_NAME_MAX, linux/limits.h
	valueRoom = gittext.Room // XATTR_SIZE_MAX

	userPrefix    = "user."
	overlayPrefix = "user.overlay."
)

// isAttribute reads the attribute's name to path 1, which is no path of the call.
//
//go:norace
func (s *State) isAttribute(op uint8, dirfd, addr, name uint64, follow bool) int {
	s.op = op
	s.in[0] = input{int(int32(dirfd)), addr, fromMemory, follow}
	if r := s.readPath(1, name); r < 0 {
		return r
	}
	switch {
	case s.plen[1] == 0 || s.plen[1] > nameMax:
		return -int(syscall.ERANGE)
	case !s.namesAttribute(userPrefix) || s.namesAttribute(overlayPrefix):
		return -int(syscall.EOPNOTSUPP)
	}
	return 0
}

// isNewAttribute also takes down where the value lies, how long it is, and the flags.
//
//go:norace
func (s *State) isNewAttribute(dirfd, addr, name uint64, follow bool, value, size, flags uint64) int {
	r := s.isAttribute(opSetAttribute, dirfd, addr, name, follow)
	s.in[1].addr, s.mode, s.flags = value, int(min(size, valueRoom+1)), int(int32(flags))
	if r == 0 && s.mode > valueRoom {
		return -int(syscall.E2BIG)
	}
	return r
}

// namesAttribute reports whether the attribute's name begins with prefix.
//
//go:norace
func (s *State) namesAttribute(prefix string) bool {
	for i := 0; i < len(prefix); i++ {
		if s.path[1][i&(pathRoom-1)] != prefix[i] {
			return false
		}
	}
	return true
}

// decodeAttribute is decode for the calls that set or remove an extended attribute.
//
//go:norace
func (s *State) decodeAttribute() int {
	a := &s.req.args
	switch s.req.nr {
	case syscall.SYS_SETXATTR:
		return s.isNewAttribute(cwd, a[0], a[1], true, a[2], a[3], a[4])
	case syscall.SYS_LSETXATTR:
		return s.isNewAttribute(cwd, a[0], a[1], false, a[2], a[3], a[4])
	case syscall.SYS_FSETXATTR:
		r := s.isNewAttribute(a[0], 0, a[1], false, a[2], a[3], a[4])
		s.in[0].from = fromFD
		return r
	case syscall.SYS_REMOVEXATTR:
		return s.isAttribute(opRemoveAttribute, cwd, a[0], a[1], true)
	case syscall.SYS_LREMOVEXATTR:
		return s.isAttribute(opRemoveAttribute, cwd, a[0], a[1], false)
	case syscall.SYS_FREMOVEXATTR:
		r := s.isAttribute(opRemoveAttribute, a[0], 0, a[1], false)
		s.in[0].from = fromFD
		return r
	}
	return s.decodeFence()
}

// attribute sets or removes an attribute of the object that was judged. Before Linux 6.13 no call takes a descriptor and a name
// in it: the supervisor's working directory is its own /proc/self/fd meanwhile. The kernel follows the link of the
// descriptor there, and no link behind it. Protected and hidden names and what
// lies in a git directory get no attribute.
//
//go:norace
func (s *State) attribute() int {
	r := s.object(0)
	if r < 0 {
		return r
	}
	if s.resolved[0].hit&(hitNames|hitHidden) != 0 || s.resolved[0].git.inside {
		return s.refuse(ReasonName)
	}
	if r = s.fenced(); r < 0 {
		return r
	}
	if s.op == opSetAttribute && s.mode > 0 {
		if r = s.readMem(unsafe.Pointer(&s.text[0].B[0]), s.in[1].addr, uint(s.mode)); r < 0 {
			return r
		}
		if r = s.alive(); r < 0 {
			return r
		}
	}
	s.number("", uint(s.resolved[0].obj))
	if r = sys(syscall.SYS_FCHDIR, uintptr(s.fdDir), 0, 0, 0, 0); r < 0 {
		return r
	}
	if s.op == opSetAttribute {
		r = sys(syscall.SYS_SETXATTR, uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.path[1][0])),
			uintptr(unsafe.Pointer(&s.text[0].B[0])), uintptr(s.mode), uintptr(s.flags))
	} else {
		r = sys(syscall.SYS_REMOVEXATTR, uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.path[1][0])), 0, 0, 0)
	}
	sys(syscall.SYS_FCHDIR, uintptr(s.rootDir), 0, 0, 0, 0)
	return r
}
