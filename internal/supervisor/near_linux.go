package supervisor

import (
	"syscall"
	"unsafe"
)

// near is one thread's affinity while it is kept on this processor.
type near struct {
	tid   uint32 // 0: none is kept
	cpu   uint32
	size  uint // of the kernel's masks, in bytes
	had   [128]byte
	here  [128]byte
	now   [128]byte
	every [128]byte
}

// keepNear, with Rules.Near, keeps the thread of the call in hand on the processor that this code runs on, until letGo.
//
// An answer wakes a thread here (syncWake), but SECCOMP_IOCTL_NOTIF_ADDFD wakes it as everything else does: on an idle processor,
// from which the answer calls it back a few microseconds later. To wake an idle processor twice, and to move twice, took two
// thirds of an open in a virtual machine.
//
// The thread sleeps in its call until the answer: no instruction of it runs, and no process is made by it, with this affinity. The
// kernel lets nothing but a fatal signal end that sleep (WAIT_KILLABLE_RECV). What cannot be had is left out: it is a matter of speed.
//
//go:norace
func (s *State) keepNear(tid uint32) {
	n := &s.near
	n.tid = 0
	size := sys(syscall.SYS_SCHED_GETAFFINITY, uintptr(tid), uintptr(len(n.had)), uintptr(unsafe.Pointer(&n.had[0])), 0, 0)
	if tid == 0 || size <= 0 || sys(sysGetcpu, uintptr(unsafe.Pointer(&n.cpu)), 0, 0, 0, 0) < 0 {
		return
	}
	n.size = uint(size)
	mine, others := byte(0), byte(0)
	for i := uint(0); i < n.size && i < uint(len(n.had)); i++ {
		n.here[i&127] = 0
		if i == uint(n.cpu/8) {
			n.here[i&127] = 1 << (n.cpu % 8)
		}
		mine |= n.had[i&127] & n.here[i&127]
		others |= n.had[i&127] &^ n.here[i&127]
	}
	if mine != 0 && others != 0 && sys(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), uintptr(n.size), uintptr(unsafe.Pointer(&n.here[0])), 0, 0) == 0 {
		n.tid = tid
	}
}

// letGo gives the thread its affinity back, unless another thread of the tool's has set it meanwhile (sched_setaffinity(2) takes a thread's number).
// What is set between calls that follow each other here, or in keepNear, is lost.
//
// The kernel keeps what is set as the thread's wish. So every processor is wished for first: a thread whose affinity that is follows its
// cpuset, should it grow.
//
//go:norace
func (s *State) letGo() {
	n := &s.near
	if n.tid == 0 || !s.hasAffinity(&n.here) {
		return
	}
	for i := range n.every {
		n.every[i] = 0xff
	}
	s.setAffinity(&n.every)
	if !s.hasAffinity(&n.had) {
		s.setAffinity(&n.had)
	}
}

//go:norace
func (s *State) setAffinity(mask *[128]byte) {
	sys(syscall.SYS_SCHED_SETAFFINITY, uintptr(s.near.tid), uintptr(s.near.size), uintptr(unsafe.Pointer(&mask[0])), 0, 0)
}

//go:norace
func (s *State) hasAffinity(mask *[128]byte) bool {
	n := &s.near
	if sys(syscall.SYS_SCHED_GETAFFINITY, uintptr(n.tid), uintptr(len(n.now)), uintptr(unsafe.Pointer(&n.now[0])), 0, 0) != int(n.size) {
		return false
	}
	for i := uint(0); i < n.size && i < uint(len(n.now)); i++ {
		if n.now[i&127] != mask[i&127] {
			return false
		}
	}
	return true
}
