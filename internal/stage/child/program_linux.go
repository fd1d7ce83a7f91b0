package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// load looks at the program in descriptor fd and takes it, to be read. self is the number that the harness gave it. It answers
// what is wrong, or "". The stage of a session's command needs the header alone; its warden has read a short program with that.
//
//go:norace
//go:nocheckptr
func load(fd uintptr, self int32) string {
	seals, errno := sys.Call(syscall.SYS_FCNTL, fd, sys.F_GET_SEALS, 0, 0, 0, 0)
	if errno != 0 || seals&sys.SEAL_ALL != sys.SEAL_ALL {
		return "the stage's program is not a sealed memfd"
	}
	warden, room := st.plan != nil, unsafe.Sizeof(wire.Header{})
	if warden {
		room = unsafe.Sizeof(st.short)
	}
	head := (*wire.Header)(unsafe.Pointer(&st.short))
	n, errno := sys.Call(syscall.SYS_PREAD64, fd, sys.Addr(&st.short), room, 0, 0, 0)
	if errno != 0 || n < unsafe.Sizeof(*head) || head.Magic != wire.Magic || head.SelfFD != self {
		return "the stage's program was not made for this process"
	}
	st.base, st.hdr = sys.Addr(&st.short), head
	if command := head.Flags&wire.FlagCommand != 0; command && !warden || uint64(n) == head.Size && n < room {
		if st.plan == nil || head.Flags&wire.FlagShares == 0 {
			st.planBase, st.plan = st.base, head
		}
		return ""
	}
	return mapProgram(fd, head)
}

// mapProgram maps a program of which the header was read.
//
//go:norace
//go:nocheckptr
func mapProgram(fd uintptr, head *wire.Header) string {
	const seekEnd = 2
	if end, errno := sys.Call(syscall.SYS_LSEEK, fd, 0, seekEnd, 0, 0, 0); errno != 0 || uint64(end) != head.Size {
		return "the stage's program is not whole"
	}
	// Mapped to be read first: populated to be written, every page would be copied.
	base, errno := sys.Call(syscall.SYS_MMAP, 0, uintptr(head.Size), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_POPULATE, fd, 0)
	if errno != 0 {
		return "the stage's program cannot be mapped"
	}
	shares := head.Flags&wire.FlagShares != 0
	st.base = base
	st.hdr = (*wire.Header)(at(0))
	if !shares {
		st.planBase, st.plan = st.base, st.hdr
	}
	return ""
}

// at makes an offset into the program a pointer. The memory is the kernel's
// mapping, not the Go heap.
//
//go:norace
//go:nocheckptr
func at(off uint32) unsafe.Pointer {
	p := st.base + uintptr(off)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// atPlan is at, of the program that has the ops.
//
//go:norace
//go:nocheckptr
func atPlan(off uint32) unsafe.Pointer {
	p := st.planBase + uintptr(off)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// op returns op i of a place.
//
//go:norace
//go:nocheckptr
func op(place int, i uint32) *wire.Op {
	return (*wire.Op)(atPlan(ops(place).Off + i*uint32(unsafe.Sizeof(wire.Op{}))))
}

// ops returns where the ops of one place are.
//
//go:norace
//go:nocheckptr
func ops(place int) wire.Span {
	if place < 0 || place >= wire.Places {
		return wire.Span{}
	}
	return st.plan.Ops[place]
}

// relocate makes the offsets of arguments and environment pointers, in a private copy. Those of the
// ops are made so as they run. It reports whether it could.
//
//go:norace
//go:nocheckptr
func relocate() bool {
	if st.base != sys.Addr(&st.short) {
		if _, errno := sys.Call(syscall.SYS_MPROTECT, st.base, uintptr(st.hdr.Size), syscall.PROT_READ|syscall.PROT_WRITE, 0, 0, 0); errno != 0 {
			return false
		}
	}
	pointers(st.hdr.Argv)
	pointers(st.hdr.Envp)
	return true
}

// pointers relocates a vector whose last element is the null that ends it.
//
//go:norace
//go:nocheckptr
func pointers(s wire.Span) {
	for i := uint32(1); i < s.Len; i++ {
		*(*uint64)(at(s.Off + (i-1)*8)) += uint64(st.base)
	}
}
