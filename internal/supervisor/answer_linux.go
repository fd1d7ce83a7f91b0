package supervisor

import (
	"syscall"
	"unsafe"
)

// What openChecked answers beside descriptors and errnos.
const (
	isTerminal = 1<<30 + iota
	isPutOff
	isJudged // of openFirst
)

// isDeferred says that an open is to be answered by deferWrite.
const isDeferred = 1

// answer ends the notification with a value or a negative errno. The tool may be gone: the answer is lost then.
//
//go:norace
func (s *State) answer(id uint64, r int) {
	s.resp.id, s.resp.val, s.resp.errno, s.resp.flags = id, int64(r), 0, 0
	if r < 0 {
		s.resp.val, s.resp.errno = 0, int32(r)
	}
	sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlSend, uintptr(unsafe.Pointer(&s.resp)), 0, 0)
}

// exists reports whether the name of resolved path k does; its stat is then known.
//
//go:norace
func (s *State) exists(k int) bool {
	sp := &s.resolved[k&1]
	if sp.stat > 0 {
		dir, name := sp.dir, &sp.name[0]
		if sp.obj >= 0 {
			s.literal("")
			dir, name = sp.obj, &s.num[0]
		}
		sp.stat = lstatat(dir, name, &sp.st)
	}
	return sp.stat == 0
}

//go:norace
func (s *State) typeOf(k int) uint32 {
	if !s.exists(k) {
		return 0
	}
	return s.resolved[k&1].st.Mode & syscall.S_IFMT
}

// give makes fd a descriptor of the tool and closes it; it returns the tool's number, or the errno to answer. The
// flags of the file are made those that the tool asked for. SECCOMP_ADDFD_FLAG_SEND would save the answer, but a signal, a
// stop or a frozen cgroup in that moment takes the descriptor back and leaves the answer, so that the tool's
// open returns 0 (kernel/seccomp.c, seccomp_notify_addfd).
//
//go:norace
func (s *State) give(id uint64, fd, flags int) int {
	if fd < 0 {
		return fd
	}
	if flags&syscall.O_NONBLOCK == 0 {
		sys(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFL, uintptr(flags&openKeeps), 0, 0)
	}
	s.add.id, s.add.flags, s.add.srcFD, s.add.newFDFlags = id, 0, uint32(fd), uint32(flags&syscall.O_CLOEXEC)
	if s.near.tid = 0; id == s.req.id && s.m.rb(offDevices)&devNear != 0 {
		s.keepNear(s.req.pid)
	}
	r := -int(syscall.EINTR)
	for r == -int(syscall.EINTR) {
		r = sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlAddFD, uintptr(unsafe.Pointer(&s.add)), 0, 0)
	}
	s.letGo()
	closeFD(fd)
	return r
}
