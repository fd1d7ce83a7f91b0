package supervisor

import (
	"syscall"
	"unsafe"
)

// Recording. A refusal sets State.why; when the call has failed because of it, record writes what was wanted, where and by which
// process into the table. A denial that is recorded already is counted. Its paths are read anew from the kernel, by the
// descriptors that the call was judged by; the process's command line, from /proc, only for a new record.

// TableBytes is the size of the memory that Record takes.
//
//go:norace
func TableBytes(s *State) uintptr {
	if s.m.rb(offWatch) != 0 {
		return DenialBytes + WatchBytes
	}
	return DenialBytes
}

// Record makes the serving code write denials to the table at address, which is TableBytes of zeros; 0: nothing is recorded.
//
//go:norace
func Record(s *State, address uintptr) {
	s.denials = address
	if s.m.rb(offWatch) != 0 && address != 0 {
		s.watched = address + DenialBytes
	}
}

// table returns the table. It lies in no memory of the Go heap.
//
//go:norace
//go:nocheckptr
func (s *State) table() *denialTable {
	return *(**denialTable)(unsafe.Pointer(&s.denials))
}

// refuse counts a refusal by rule, and notes why.
//
//go:norace
func (s *State) refuse(why Reason) int { return s.refuseAt(0, why) }

// refuseAt is refuse for what is wrong with path k.
//
//go:norace
func (s *State) refuseAt(k int, why Reason) int {
	s.Refused++
	s.why, s.side = why, uint8(k)
	return -eACCES
}

// unreadable notes why the caller's arguments cannot be read.
//
//go:norace
func (s *State) unreadable(why Reason) int {
	s.why, s.side = why, 0
	return -eACCES
}

// recordDenial records the call in hand, with r for a result, if it was refused. The path in s.m is overwritten.
//
//go:norace
func (s *State) recordDenial(r int) {
	refused := r == -eACCES || s.why == ReasonAddress && r == -int(syscall.ECONNREFUSED) || r == -int(syscall.EPERM) || s.why == ReasonTracer && r == -eINVAL || (s.why == ReasonSetID || s.why == ReasonOthers) && r >= 0
	if !refused || s.denials == 0 {
		return
	}
	t := s.table()
	d := s.newDenial(t)
	d.deed, d.reason, d.side = uint8(s.deed()), uint8(s.why), s.side
	if s.why == ReasonMemory || s.why == ReasonMounts {
		d.deed = uint8(DeedCall)
	} else if s.op == opConnect || s.why == ReasonAddress {
		d.add(0, s.path[1][:], uint(s.mode))
	} else {
		for k := 0; k < 2; k++ {
			sp := &s.resolved[k&1]
			if s.why == ReasonEntry && k == 0 {
				d.add(0, s.index.name[:], s.index.size)
				continue
			}
			if s.in[k].from == fromNothing || s.op == opSymlink && k == 1 || s.pathOf(sp) < 0 {
				continue
			}
			d.hit[k&1], d.git[k&1] = sp.hit, sp.git.at
			d.add(k, s.m.path[:], s.m.n)
		}
	}
	if s.publish(t, d) {
		s.identify(&d.who)
		s.finish(t, d)
	}
}

// recordWaiting records an open that is refused after it was put off, by what is left of the call: resolved path 0, and who made it.
//
//go:norace
func (s *State) recordWaiting(w *waiting) {
	if s.denials == 0 || s.pathOf(&s.resolved[0]) < 0 {
		return
	}
	t := s.table()
	d := s.newDenial(t)
	d.deed, d.reason = uint8(s.deed()), uint8(s.why)
	d.hit[0], d.git[0] = s.resolved[0].hit, s.resolved[0].git.at
	d.add(0, s.m.path[:], s.m.n)
	if s.publish(t, d) {
		d.who = w.who
		s.finish(t, d)
	}
}

// recordDeferred records a deferred write that is not delivered.
//
//go:norace
func (s *State) recordDeferred(l *deferredWrite) {
	if s.denials == 0 || s.canonical(l.dir) <= 0 {
		return
	}
	t := s.table()
	d := s.newDenial(t)
	d.deed, d.reason = uint8(DeedWrite), uint8(ReasonText)
	if l.kind == textConfig {
		d.reason = uint8(ReasonConfig)
	}
	s.m.addName(l.name[:])
	d.hit[0] = l.hit
	d.add(0, s.m.path[:], s.m.n)
	if s.publish(t, d) {
		d.who = l.who
		s.finish(t, d)
	}
}

// deed says what the call in hand does.
//
//go:norace
func (s *State) deed() Deed {
	if s.why == ReasonSetID {
		return DeedSetID
	}
	switch s.op {
	case opOpen:
		switch {
		case s.flags&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC|syscall.O_CREAT) == 0:
			return DeedRead
		case s.flags&syscall.O_CREAT != 0 && s.resolved[0].stat != 0:
			return DeedCreate
		}
		return DeedWrite
	case opUnlink:
		if s.mode&atRemoveDir != 0 {
			return DeedRemoveDir
		}
		return DeedRemove
	case opRename:
		if s.flags&renameExchange != 0 {
			return DeedExchange
		}
		return DeedRename
	}
	return s.otherDeed()
}

//go:norace
func (s *State) otherDeed() Deed {
	switch s.op {
	case opMakeDir:
		return DeedMakeDir
	case opMakeNode:
		return DeedMakeNode
	case opSymlink:
		return DeedSymlink
	case opLink:
		return DeedLink
	case opTruncate:
		return DeedTruncate
	case opChmod:
		return DeedMode
	case opBind, opListen:
		return DeedBind
	case opConnect:
		return DeedConnect
	case opChown:
		return DeedOwner
	case opTimes:
		return DeedTimes
	case opTrace:
		return DeedTrace
	case opSetAttribute, opRemoveAttribute:
		return DeedAttribute
	case opLook:
		return DeedLook
	case opExecute:
		return DeedExecute
	}
	return DeedCall
}

// newDenial returns the place of the next record, empty. While the table is full that is the last, which never counts.
//
//go:norace
func (s *State) newDenial(t *denialTable) *denialRecord {
	i := t.used
	if i > DenialRoom {
		i = DenialRoom
	}
	d := &t.record[i]
	d.hit[0], d.hit[1], d.git[0], d.git[1], d.size[0], d.size[1], d.side = 0, 0, 0, 0, 0, 0, 0
	return d
}

// add makes n bytes of b the record's path k.
//
//go:norace
func (d *denialRecord) add(k int, b []byte, n uint) {
	d.size[k&1] = uint16(n)
	for i := uint(0); i < n && i < DenialPathRoom && i < uint(len(b)); i++ {
		d.path[k&1][i] = b[i]
	}
}

// publish counts the denial if there is a record of it: false. So it does if there is no room for one.
//
//go:norace
func (s *State) publish(t *denialTable, d *denialRecord) bool {
	h := d.sum()
	for i := uint32(0); i < t.used && i < DenialRoom; i++ {
		if t.hash[i] == h && d.same(&t.record[i]) {
			t.record[i].count++
			return false
		}
	}
	if t.used >= DenialRoom {
		t.beyond++
		return false
	}
	t.hash[t.used] = h
	return true
}

// finish makes the record one that counts, once all of it is there. A reader that sees the number before the rest, as other
// processors may, finds that the sum does not fit, and leaves the record out.
//
//go:norace
func (s *State) finish(t *denialTable, d *denialRecord) {
	sys(syscall.SYS_CLOCK_GETTIME, 0, uintptr(unsafe.Pointer(&d.time)), 0, 0, 0)
	d.count = 1
	t.used++
}

// same reports whether two denials are the same but for the process, as far as their paths are recorded.
//
//go:norace
func (d *denialRecord) same(e *denialRecord) bool {
	if d.deed != e.deed || d.reason != e.reason || d.size[0] != e.size[0] || d.size[1] != e.size[1] {
		return false
	}
	for k := 0; k < 2; k++ {
		for i := uint(0); i < uint(d.size[k&1]) && i < DenialPathRoom; i++ {
			if d.path[k&1][i] != e.path[k&1][i] {
				return false
			}
		}
	}
	return true
}

// identify notes the caller's process number and what the process says of itself.
//
//go:norace
func (s *State) identify(w *caller) {
	w.pid, w.size = uint32(s.leader()), 0
	for i := range w.comm {
		w.comm[i] = 0
	}
	s.readTask("comm", &w.comm[0], commRoom)
	if n := s.readTask("cmdline", &w.command[0], commandRoom); n > 0 {
		w.size = uint32(n)
	}
}

// readTask reads the head of a file of the caller's in /proc: its length, or a negative errno.
//
//go:norace
func (s *State) readTask(name string, b *byte, room uint) int {
	s.literal(name)
	fd := openat(s.task, &s.num[0], syscall.O_RDONLY, 0)
	if fd < 0 {
		return fd
	}
	n := sys(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(b)), uintptr(room), 0, 0)
	closeFD(fd)
	return n
}

// pathOf makes s.m.path the kernel's path of resolved path sp: 0 or a negative errno.
//
//go:norace
func (s *State) pathOf(sp *resolvedPath) int {
	n := s.anyPath(max(sp.dir, sp.obj)) // one of them is -1
	if n < 0 {
		return n
	}
	if sp.obj < 0 {
		s.m.addName(sp.name[:])
	} else if s.m.gone(s.m.n) {
		s.m.n -= uint(len(goneTail))
	}
	return 0
}

// addName puts a name behind the directory's path in m.
//
//go:norace
func (m *matcher) addName(name []byte) {
	at := m.n
	if at > 1 {
		m.path[at&(longRoom-1)] = '/'
		at++
	}
	for i := 0; i < len(name) && i < 255 && name[i] != 0 && name[i] != '/'; i++ {
		m.path[at&(longRoom-1)] = name[i]
		at++
	}
	m.n = at
}

// sideOf says which of the call's paths sp is.
//
//go:norace
func (s *State) sideOf(sp *resolvedPath) int {
	if sp == &s.resolved[1] {
		return 1
	}
	return 0
}

// leaveOut takes bits out of the mode in hand, which the report says.
//
//go:norace
func (s *State) leaveOut(bits int, why Reason) {
	if bits != 0 {
		s.mode &^= bits
		s.left = why
	}
}
