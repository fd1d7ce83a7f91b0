package launch

import (
	"errors"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"
)

// elfHeader is Elf64_Ehdr, elfSegment Elf64_Phdr (elf(5)).
type elfHeader struct {
	ident                                 [16]byte
	kind, machine                         uint16
	version                               uint32
	entry, segments, _                    uint64
	_                                     uint32
	size, segmentSize, segmentCount, _, _ uint16
	_                                     uint16
}

type elfSegment struct {
	kind, flags                           uint32
	off, addr, _, fileSize, memory, align uint64
}

const (
	elfExec = 2 // an executable at fixed addresses

	segLoad  = 1
	segTLS   = 7
	segStack = 0x6474e551

	segExec  = 1
	segWrite = 2
	segRead  = 4
)

// readELF reads the headers of an executable.
func readELF(exe io.ReaderAt) (elfHeader, []elfSegment, error) {
	var h elfHeader
	if _, err := exe.ReadAt(bytesOf(&h), 0); err != nil {
		return h, nil, err
	}
	if string(h.ident[:5]) != "\x7fELF\x02" || int(h.segmentSize) != int(unsafe.Sizeof(elfSegment{})) || h.segmentCount == 0 || h.segmentCount > 64 {
		return h, nil, errors.New("the executable is no ELF file of 64 bits")
	}
	segments := make([]elfSegment, h.segmentCount)
	for i := range segments {
		if _, err := exe.ReadAt(bytesOf(&segments[i]), int64(h.segments)+int64(i)*int64(h.segmentSize)); err != nil {
			return h, nil, err
		}
	}
	return h, segments, nil
}

// loadBias is how far from its file's addresses this process's program lies.
func loadBias(h elfHeader) (uint64, error) {
	const atEntry = 9 // AT_ENTRY, getauxval(3)
	auxv, err := unix.Auxv()
	if err != nil {
		return 0, err
	}
	for _, v := range auxv {
		if v[0] == atEntry {
			return uint64(v[1]) - h.entry, nil
		}
	}
	return 0, errors.New("the kernel does not tell the program's entry")
}

// executes reports whether an address is in a segment that is executed.
func executes(segments []elfSegment, at uint64) bool {
	for _, s := range segments {
		if s.kind == segLoad && s.flags&segExec != 0 && at >= s.addr && at < s.addr+s.fileSize {
			return true
		}
	}
	return false
}

// bytesOf returns the bytes of a struct of plain numbers.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
