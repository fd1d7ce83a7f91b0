package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// load finds the program, maps a private copy and makes its offsets pointers.
// It answers what is wrong, or "".
func load() string {
	fd, ok := programFD()
	if !ok {
		return "this program was executed as a sandbox's stage, but not by a sandbox: its Path, or a copy of its exec.Cmd, was used outside of one"
	}
	seals, errno := sys.Call(syscall.SYS_FCNTL, fd, sys.F_GET_SEALS, 0, 0, 0, 0)
	if errno != 0 || seals&sys.SEAL_ALL != sys.SEAL_ALL {
		return "the stage's program is not a sealed memfd"
	}
	var head wire.Header
	n, errno := sys.Call(syscall.SYS_PREAD64, fd, sys.Addr(&head), unsafe.Sizeof(head), 0, 0, 0)
	if errno != 0 || n != unsafe.Sizeof(head) || head.Magic != wire.Magic || head.SelfFD != int32(fd) {
		return "the stage's program was not made for this process"
	}
	const seekEnd = 2
	if end, errno := sys.Call(syscall.SYS_LSEEK, fd, 0, seekEnd, 0, 0, 0); errno != 0 || uint64(end) != head.Size {
		return "the stage's program is not whole"
	}
	base, errno := sys.Call(syscall.SYS_MMAP, 0, uintptr(head.Size),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_POPULATE, fd, 0)
	if errno != 0 {
		return "the stage's program cannot be mapped"
	}
	st.base = base
	st.hdr = (*wire.Header)(at(0))
	relocate()
	return ""
}

// programFD reads the descriptor's number from the stage's own environment,
// which the harness wrote whole.
func programFD() (uintptr, bool) {
	s, ok := syscall.Getenv(wire.FDName)
	if !ok || s == "" || len(s) > 9 {
		return 0, false
	}
	n := uintptr(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + uintptr(s[i]-'0')
	}
	return n, n > 2
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

// ops returns the ops of one place.
//
//go:norace
//go:nocheckptr
func ops(place int) []wire.Op {
	s := st.hdr.Ops[place]
	return unsafe.Slice((*wire.Op)(at(s.Off)), s.Len)
}

func relocate() {
	for place := range wire.Places {
		list := ops(place)
		for i := range list {
			op := &list[i]
			for j := range op.Arg {
				if op.Kind[j] == wire.Ptr {
					op.Arg[j] += uint64(st.base)
				}
			}
		}
	}
	pointers(st.hdr.Argv)
	pointers(st.hdr.Envp)
}

// pointers relocates a vector whose last element is the null that ends it.
func pointers(s wire.Span) {
	vector := unsafe.Slice((*uint64)(at(s.Off)), s.Len)
	for i := range len(vector) - 1 {
		vector[i] += uint64(st.base)
	}
}
