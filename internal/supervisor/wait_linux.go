package supervisor

import "syscall"

// An open that the kernel would make the tool wait for must not make the supervisor wait, for everybody else waits
// for it. It is put off: a FIFO until its other end is open (fifo(7)), a file under a lease (fcntl(2), F_SETLEASE) until the
// holder lets go. The tool stays in its system call meanwhile.

// Pending returns how many opens are put off or asked about, and how many deferred writes are being written. While it
// is not 0 the caller calls Retry and RetryAsked every few milliseconds, and after each Serve.
//
//go:norace
func Pending(s *State) int { return s.waits + s.asked + s.deferredCount }

// Retry tries the opens that are put off once more, forgets those whose tool is gone, and delivers deferred writes.
//
//go:norace
func Retry(s *State) {
	s.finishWrites()
	for i := range s.wait {
		w := &s.wait[i]
		if !w.used {
			continue
		}
		s.req.id = w.id
		if s.alive() < 0 {
			s.forget(w)
			continue
		}
		if w.fd >= 0 && !w.ready {
			continue
		}
		fd := w.fd
		if fd < 0 {
			fd = s.reopenWaiting(w)
		}
		if fd == -int(syscall.ENXIO) || fd == -int(syscall.EAGAIN) {
			continue
		}
		if fd >= 0 && w.flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0 {
			s.wakeReaders(w.dev, w.ino)
		}
		w.fd = -1 // give closes it
		s.answer(w.id, s.give(w.id, fd, w.flags))
		s.forget(w)
	}
}

// reopenWaiting opens what w waits for, and judges it as a new open is: while it was put off another sandbox may have given the file a name
// under which it is protected (replaceIndex, which has the lease meanwhile). Only then is it truncated.
//
//go:norace
func (s *State) reopenWaiting(w *waiting) int {
	fd := s.reopen(w.dir, w.flags&^syscall.O_TRUNC|syscall.O_NONBLOCK, 0)
	if fd < 0 {
		return fd
	}
	sp := &s.resolved[0]
	sp.reset()
	s.op, s.why, s.flags, s.in[0].from, s.in[1].from, sp.obj = opOpen, ReasonNone, w.flags, fromFD, fromNothing, w.dir
	r := s.stillMay(w.flags)
	w.dir = sp.obj // astray may have put another in its place
	if r == 0 && w.flags&syscall.O_TRUNC != 0 && s.typeOf(0) == syscall.S_IFREG {
		r = sys(syscall.SYS_FTRUNCATE, uintptr(fd), 0, 0, 0, 0)
	}
	if s.why != ReasonNone {
		s.recordWaiting(w)
	}
	sp.reset()
	if r < 0 {
		closeFD(fd)
		return r
	}
	return fd
}

//go:norace
func (s *State) forget(w *waiting) {
	closeFD(w.dir)
	closeFD(w.fd)
	w.used = false
	s.waits--
}

// putOff keeps the open of resolved path 0 for later. EAGAIN says that too many are kept.
//
//go:norace
func (s *State) putOff(flags int) int {
	sp, r := &s.resolved[0], s.object(0)
	if r == 0 && !s.exists(0) {
		r = sp.stat
	}
	if r < 0 {
		closeFD(s.pendingFD)
		return r
	}
	for i := range s.wait {
		w := &s.wait[i]
		if w.used {
			continue
		}
		w.used, w.ready, w.id, w.dir, w.fd = true, false, s.req.id, sp.obj, s.pendingFD
		w.dev, w.ino = uint64(sp.st.Dev), sp.st.Ino
		w.flags = flags &^ (syscall.O_CREAT | syscall.O_EXCL | syscall.O_NOFOLLOW)
		s.identify(&w.who)
		sp.obj = -1
		s.waits++
		s.sent = true
		return 0
	}
	closeFD(s.pendingFD)
	return -int(syscall.EAGAIN)
}

// wakeReaders marks the readers that wait for a writer of this FIFO.
//
//go:norace
func (s *State) wakeReaders(dev, ino uint64) {
	for i := range s.wait {
		w := &s.wait[i]
		if w.used && w.dev == dev && w.ino == ino {
			w.ready = true
		}
	}
}
