package supervisor

import (
	"syscall"
	"unsafe"
)

// Rules for every function of the serving path, in this file and those it calls. They
// run in a child forked from a Go process without an exec: there is no Go runtime, and
// the stack does not grow. None allocates, stores a pointer, converts a string, indexes
// without a mask or a check, divides by a variable, takes a lock, defers, or calls
// anything but system calls and its like. What a function needs beyond a few words lies
// in State. TestBareCodeCallsNoRuntime of package archtest reads the machine code and holds
// this to be so.

// Serve receives one notification from the listener given to Prepare, carries the call out or refuses it, and
// answers. The caller polls the listener first: without a notification Serve blocks. It returns 0, or
// a negative errno when the listener is of no more use. Every failure on the way is the tool's errno.
//
//go:norace
func Serve(s *State) int {
	s.req = notification{}
	r := sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlRecv, uintptr(unsafe.Pointer(&s.req)), 0, 0)
	if r == -eNOENT || r == -int(syscall.EINTR) {
		return 0 // the tool died, or took a signal, before it was heard
	}
	if r < 0 {
		return r
	}
	s.sent = false
	s.closeMemory()
	s.finishWrites()
	s.why, s.left = ReasonNone, ReasonNone
	s.resolved[0].reset()
	s.resolved[1].reset()
	s.in[0].from, s.in[1].from, s.plen[0], s.plen[1] = fromNothing, fromNothing, 0, 0
	if s.onlyWatched() {
		s.observe()
		s.closeMemory()
		return 0
	}
	if r = s.enter(); r == 0 {
		r = s.decode()
	}
	for k := 0; k < 2 && r == 0; k++ {
		if r = s.read(k); r != 0 {
			break
		}
		if r = s.find(k); r == 0 {
			r = s.judge(k)
		}
	}
	if r == 0 {
		r = s.alive()
	}
	dot := -1
	if r == 0 {
		dot = s.newDot()
		r = s.do()
	}
	if s.left != ReasonNone && r >= 0 && (s.op != opOpen || s.resolved[0].stat != 0) {
		s.why, s.side = s.left, 0
	}
	if r >= 0 && (s.resolved[0].free || s.resolved[1].free) {
		s.noteFree()
	}
	if dot >= 0 && r >= 0 {
		s.noteDot(dot)
	}
	if s.why != ReasonNone {
		s.recordDenial(r)
	} else if s.watched != 0 && r < 0 && !s.ask(r, false) {
		s.recordFailure(r)
	}
	s.closeMemory()
	s.resolved[0].drop()
	s.resolved[1].drop()
	if !s.sent {
		s.answer(s.req.id, r)
	}
	return 0
}

// do carries out the call, whose paths are found and judged.
//
//go:norace
func (s *State) do() int {
	if (s.resolved[0].hit|s.resolved[1].hit)&hitSelf != 0 {
		if s.op == opOpen && s.flags&(syscall.O_WRONLY|syscall.O_RDWR) == 0 {
			return -eACCES // ps(1) reads of every process: that is no denial to be told of
		}
		return s.refuse(ReasonOwn)
	}
	if (s.resolved[0].hit|s.resolved[1].hit)&hitLost != 0 {
		return s.refuse(ReasonLost)
	}
	if s.beyond() {
		return -eACCES // as Landlock says
	}
	switch s.op {
	case opOpen:
		return s.open()
	case opMakeDir:
		return s.makeDir()
	case opMakeNode:
		return s.makeNode()
	case opSymlink:
		return s.symlink()
	case opUnlink:
		return s.unlink()
	case opRename:
		return s.rename()
	case opLink:
		return s.hardLink()
	case opTruncate:
		return s.truncate()
	case opChmod:
		return s.chmod()
	case opBind, opListen, opConnect:
		return s.meet()
	case opSocket:
		return s.socket()
	case opChown:
		return s.chown()
	case opTimes:
		return s.setTimes()
	case opTrace:
		return s.trace()
	case opSetAttribute, opRemoveAttribute:
		return s.attribute()
	}
	return -int(syscall.ENOSYS)
}

// meet carries out a call that names, connects or begins to serve at a socket.
//
//go:norace
func (s *State) meet() int {
	shares := s.pair[0] > 0 && s.m.rb(offFlags)&flagConnects != 0
	for n := 0; shares && n < portRoom+boundRoom && s.takeShared(); n++ {
	}
	r := -eINVAL
	switch s.op {
	case opBind:
		r = s.bind()
	case opListen:
		r = s.listen()
	case opConnect:
		r = s.connect()
	}
	if shares {
		s.putShared()
	}
	return r
}
