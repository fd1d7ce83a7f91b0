package supervisor

import (
	"syscall"
	"unsafe"
)

// Owners and times: calls that are served where Rules.Fence asks, since neither a mount nor Landlock keeps the tool from
// changing those of the user's files outside.

// fenced refuses to change what lies outside: 0, or a negative errno. A file without a name is the tool's own, or will be
// gone: a memfd, one of O_TMPFILE. Spot 0 is an object.
//
//go:norace
func (s *State) fenced() int {
	sp := &s.resolved[0]
	if s.m.rb(offFence) == 0 || sp.granted {
		return 0
	}
	if s.exists(0) && sp.st.Nlink == 0 {
		return 0
	}
	s.refuse(ReasonFence)
	return -int(syscall.EPERM)
}

// chown leaves what other programs obey, and what is hidden, to the group that has it: another of the user's could have more members, and the mode let
// the group write. (Where there is a user namespace the tool has one group.)
//
//go:norace
func (s *State) chown() int {
	const none = 1<<32 - 1
	r := s.object(0)
	if r == 0 {
		r = s.fenced()
	}
	if r < 0 {
		return r
	}
	sp := &s.resolved[0]
	held := sp.git.inside || sp.hit&(hitNames|hitFixed|hitHidden) != 0 || sp.git.rules && s.typeOf(0) == syscall.S_IFDIR && shaped(s.keys(sp.obj))
	if held && s.exists(0) && (s.mode != none && s.mode != int(sp.st.Uid) || s.dev != none && s.dev != int(sp.st.Gid)) {
		return s.refuse(ReasonName)
	}
	s.number("", uint(s.resolved[0].obj))
	return sys(syscall.SYS_FCHOWNAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(s.mode), uintptr(s.dev), 0)
}

//go:norace
func (s *State) setTimes() int {
	r := s.object(0)
	if r == 0 {
		r = s.fenced()
	}
	if r < 0 {
		return r
	}
	times := uintptr(0)
	if s.mode != 0 {
		times = uintptr(unsafe.Pointer(&s.times[0]))
	}
	s.number("", uint(s.resolved[0].obj))
	return sys(syscall.SYS_UTIMENSAT, uintptr(s.fdDir), uintptr(unsafe.Pointer(&s.num[0])), times, 0, 0)
}

// decodeFence is decode for the calls of Rules.Fence.
//
//go:norace
func (s *State) decodeFence() int {
	a := &s.req.args
	switch s.req.nr {
	case nrChown:
		return s.isOwner(cwd, a[0], a[1], a[2], 0)
	case nrLchown:
		return s.isOwner(cwd, a[0], a[1], a[2], atNoFollow)
	case syscall.SYS_FCHOWN:
		s.isOwner(a[0], 0, a[1], a[2], 0)
		s.in[0].from = fromFD
		return 0
	case syscall.SYS_FCHOWNAT:
		return s.isOwner(a[0], a[1], a[2], a[3], a[4])
	case syscall.SYS_UTIMENSAT:
		return s.isTimes(a[0], a[1], a[2], a[3], timesNS)
	case nrUtimes:
		return s.isTimes(cwd, a[0], a[1], 0, timesUS)
	case nrFutimesat:
		return s.isTimes(a[0], a[1], a[2], 0, timesUS)
	case nrUtime:
		return s.isTimes(cwd, a[0], a[1], 0, timesS)
	}
	return -int(syscall.ENOSYS)
}

//go:norace
func (s *State) isOwner(dirfd, addr, uid, gid, flags uint64) int {
	r := s.isChmod(dirfd, addr, 0, flags)
	s.op, s.mode, s.dev = opChown, int(uint32(uid)), int(uint32(gid))
	return r
}

// What a call's times are counted in.
const (
	timesNS = iota // struct timespec
	timesUS        // struct timeval
	timesS         // struct utimbuf
)

// isTimes copies the times. s.mode says whether there are any: none means now.
//
//go:norace
func (s *State) isTimes(dirfd, addr, times, flags uint64, unit int) int {
	r := s.isChmod(dirfd, addr, 0, flags)
	s.op, s.mode = opTimes, 0
	if addr == 0 && unit != timesS {
		if int32(dirfd) == atFDCWD {
			return -int(syscall.EFAULT)
		}
		s.in[0].from = fromFD
	}
	if r < 0 || times == 0 {
		return r
	}
	s.mode = 1
	size := unsafe.Sizeof(s.times)
	if unit == timesS {
		size /= 2
	}
	if r = s.readMem(unsafe.Pointer(&s.times[0]), times, uint(size)); r < 0 {
		return r
	}
	switch unit {
	case timesS:
		s.times[1].sec, s.times[0].nsec = s.times[0].nsec, 0
		s.times[1].nsec = 0
	case timesUS:
		for i := range s.times {
			if s.times[i].nsec < 0 || s.times[i].nsec >= 1e6 {
				return -eINVAL
			}
			s.times[i].nsec *= 1000
		}
	}
	return 0
}
