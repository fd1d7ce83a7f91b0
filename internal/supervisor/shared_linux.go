package supervisor

import (
	"syscall"
	"unsafe"
)

// What the commands of a session know of each other's sockets, under Rules.Connects. Each has a supervisor, and these serve in turn. Between two calls the
// ports that tools serve and the files that their sockets are bound to lie, as messages with the descriptors that State would hold, in a pair of
// sockets that all supervisors have and that nothing else reads. The call that needs them takes all of them out and puts them back. So a port is held as long as the
// session has it in the pair, also when the command's supervisor has been killed; one that is killed in the middle of a call takes with it
// what it had in hand, and those servers cannot be connected to any more.

const (
	cmsgHead    = 16
	scmRights   = 1
	msgDontWait = 0x40
	msgNoSignal = 0x4000
	msgCloexec  = 0x40000000
)

// Share has the supervisor share its tool's sockets with those of the other commands of a session, whose init has this number. The ends of a pair of
// stream sockets are theirs alone.
//
//go:norace
func Share(s *State, in, out int, init uint) { s.pair[0], s.pair[1], s.place = in, out, init }

// takeShared takes one message into the tables; false: there is none.
//
//go:norace
func (s *State) takeShared() bool {
	s.passing = cmsgFDs{}
	s.iov[0] = iovec{uintptr(unsafe.Pointer(&s.sharing)), unsafe.Sizeof(s.sharing)}
	s.message = msghdr{iov: uintptr(unsafe.Pointer(&s.iov[0])), iovs: 1, control: uintptr(unsafe.Pointer(&s.passing)), controlLen: unsafe.Sizeof(s.passing)}
	n := sys(syscall.SYS_RECVMSG, uintptr(s.pair[0]), uintptr(unsafe.Pointer(&s.message)), msgDontWait|msgCloexec, 0, 0)
	if n <= 0 {
		return false
	}
	fds := [2]int{-1, -1}
	for i := uintptr(0); i < 2 && s.message.controlLen >= cmsgHead && s.passing.size >= cmsgHead+4*(i+1); i++ {
		fds[i&1] = int(s.passing.fds[i&1])
	}
	rec := &s.sharing
	whole := n == int(unsafe.Sizeof(*rec)) && fds[0] >= 0 && (fds[1] >= 0) != rec.isFile
	for i := range s.bound {
		if b := &s.bound[i]; whole && rec.isFile && b.fd < 0 {
			b.fd, b.dev, b.ino = fds[0], rec.dev, rec.ino
			return true
		}
	}
	for i := range s.ports {
		if h := &s.ports[i]; whole && !rec.isFile && h.fd < 0 {
			h.fd, h.life, h.addr, h.port, h.open = fds[0], fds[1], rec.addr, rec.port, rec.isOpen
			return true
		}
	}
	closeFD(fds[0]) // the limit of descriptors, or more than there is room for
	closeFD(fds[1])
	return true
}

// putShared puts the tables back, but for what has ended.
//
//go:norace
func (s *State) putShared() {
	for i := range s.ports {
		h := &s.ports[i]
		if h.fd < 0 {
			continue
		}
		s.sharing = sharedRecord{addr: h.addr, port: h.port, isOpen: h.open}
		if !s.lives(h) || s.sendShared(h.fd, h.life) {
			closeFD(h.fd)
			closeFD(h.life)
			h.fd, h.life = -1, -1
		}
	}
	for i := range s.bound {
		b := &s.bound[i]
		s.literal("")
		if b.fd < 0 {
			continue
		}
		s.sharing = sharedRecord{dev: b.dev, ino: b.ino, isFile: true}
		if lstatat(b.fd, &s.num[0], &s.st) != 0 || s.st.Nlink == 0 || s.sendShared(b.fd, -1) {
			closeFD(b.fd)
			b.fd = -1
		}
	}
}

// sendShared sends a message; one that cannot be sent stays in the table, and is this command's alone until the next call.
//
//go:norace
func (s *State) sendShared(fd, second int) bool {
	size := uintptr(cmsgHead + 8)
	if second < 0 {
		size = cmsgHead + 4
	}
	s.passing = cmsgFDs{size, syscall.SOL_SOCKET, scmRights, [2]int32{int32(fd), int32(second)}}
	s.iov[0] = iovec{uintptr(unsafe.Pointer(&s.sharing)), unsafe.Sizeof(s.sharing)}
	s.message = msghdr{iov: uintptr(unsafe.Pointer(&s.iov[0])), iovs: 1, control: uintptr(unsafe.Pointer(&s.passing)), controlLen: size}
	return sys(syscall.SYS_SENDMSG, uintptr(s.pair[1]), uintptr(unsafe.Pointer(&s.message)), msgDontWait|msgNoSignal, 0, 0) == int(unsafe.Sizeof(s.sharing))
}
