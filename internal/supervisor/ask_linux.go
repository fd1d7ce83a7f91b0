package supervisor

import (
	"syscall"
	"unsafe"
)

// Asking. The tool's thread stays in its open(2) meanwhile, which a signal with a handler does not end
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), and init serves the other calls. Whatever the harness does, the call is answered after
// Rules.Patience: as without a question.

// Asks reports whether the rules want a socket for questions.
//
//go:norace
func Asks(s *State) bool { return s.m.r32(offPatience) != 0 }

// AskBy makes socket, of type SOCK_SEQPACKET and not blocking, the one over which the harness is asked. The caller polls it, too.
//
//go:norace
func AskBy(s *State, socket int) { s.asks = socket }

// AsksBy returns that socket; -1: there is none.
//
//go:norace
func AsksBy(s *State) int { return s.asks }

// ask asks about the open in hand, which fails with r. True: it is answered later.
//
//go:norace
func (s *State) ask(r int, goesOn bool) bool {
	const excl = syscall.O_CREAT | syscall.O_EXCL
	if s.asks < 0 || s.op != opOpen || s.in[0].from == fromNothing || r != -eNOENT && r != -eACCES && r != -int(syscall.EROFS) {
		return false
	}
	if s.flags&(oPath|oTmpfileBit|syscall.O_DIRECTORY) != 0 || s.flags&excl == excl || s.flags&3 == 3 {
		return false
	}
	i := 0
	for i < askRoom && s.asking[i&(askRoom-1)].used {
		i++
	}
	q := &s.question
	if i == askRoom || !s.describe(&q.denial) || q.denial.size[0] > DenialPathRoom || s.alive() < 0 {
		return false
	}
	q.id, q.gone, q.errno, q.flags = s.req.id, 0, int32(-r), int32(s.flags)
	if !s.send() {
		return false // the harness has enough to read
	}
	a := &s.asking[i&(askRoom-1)]
	a.used, a.goesOn, a.id, a.errno, a.flags = true, goesOn, s.req.id, r, s.flags
	sys(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&a.until)), 0, 0, 0)
	a.until.sec += int64(s.m.r32(offPatience))
	s.asked++
	s.sent = true
	return true
}

// send sends s.question, if there is room.
//
//go:norace
func (s *State) send() bool {
	r := sys(syscall.SYS_SENDTO, uintptr(s.asks), uintptr(unsafe.Pointer(&s.question)), unsafe.Sizeof(s.question), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0)
	return r == int(unsafe.Sizeof(s.question))
}

// TakeAnswer takes one answer of the harness's. A negative result says that none will come any more; what is asked is answered then.
//
//go:norace
func TakeAnswer(s *State) int {
	s.iov[0] = iovec{uintptr(unsafe.Pointer(&s.answered)), unsafe.Sizeof(s.answered)}
	s.rights = cmsgFD{}
	s.message = msghdr{iov: uintptr(unsafe.Pointer(&s.iov[0])), iovs: 1, control: uintptr(unsafe.Pointer(&s.rights)), controlLen: unsafe.Sizeof(s.rights)}
	n := sys(syscall.SYS_RECVMSG, uintptr(s.asks), uintptr(unsafe.Pointer(&s.message)), syscall.MSG_DONTWAIT|syscall.MSG_CMSG_CLOEXEC, 0, 0)
	if n == -int(syscall.EAGAIN) || n == -int(syscall.EINTR) {
		return 0
	}
	fd := -1
	if n >= 0 && s.message.controlLen >= 20 && s.rights.level == syscall.SOL_SOCKET && s.rights.typ == syscall.SCM_RIGHTS {
		fd = int(s.rights.fd)
	}
	if n != int(unsafe.Sizeof(s.answered)) {
		closeFD(fd)
		closeFD(s.asks)
		s.asks = -1
		for i := range s.asking {
			s.settle(&s.asking[i], -1)
		}
		return -1
	}
	for i := range s.asking {
		if a := &s.asking[i]; a.used && a.id == s.answered.id {
			s.settle(a, fd)
			return 0
		}
	}
	closeFD(fd) // the call was answered otherwise
	return 0
}

// settle answers an open that was asked about: with fd, or, if that is -1, as if it had not been asked about. The kernel takes a descriptor for a
// call that waits alone, so that none comes to a process that has another's number by now.
//
//go:norace
func (s *State) settle(a *asking, fd int) {
	if !a.used {
		return
	}
	a.used = false
	s.asked--
	switch {
	case fd >= 0:
		s.answer(a.id, s.give(a.id, fd, a.flags))
	case a.goesOn:
		s.goOn(a.id)
	default:
		s.answer(a.id, a.errno)
	}
}

// RetryAsked settles the opens whose time is over, and forgets those whose process is gone. The harness learns of both.
//
//go:norace
func RetryAsked(s *State) {
	if s.asked == 0 {
		return
	}
	now := &s.now
	sys(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(now)), 0, 0, 0)
	for i := range s.asking {
		a := &s.asking[i]
		if !a.used {
			continue
		}
		late := now.sec > a.until.sec || now.sec == a.until.sec && now.nsec >= a.until.nsec
		s.req.id = a.id
		if !late && s.alive() == 0 {
			continue
		}
		s.question.id, s.question.gone = a.id, 1
		s.send() // without room for it the harness learns it by its answer's having no effect
		s.settle(a, -1)
	}
}
