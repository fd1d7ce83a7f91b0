package stage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/child"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// The image is an ELF file in memory, with one segment: the code of child.Image,
// the table of mappings, and a sentence. It is made once in a process, is sealed,
// and can be executed as often as there are runs; see package child for why.
//
// Its descriptor has a high number, which os/exec's Path names. The harness's
// executable is opened once, too, and given to each stage: its path may be gone.

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

	// imageAt is where the image lies if it can: below programs for amd64, above
	// vm.mmap_min_addr. imageRoom is more than it needs, imageMost the end of the
	// smallest address space that arm64 commonly has, of 39 bits.
	imageAt   = 0x200000
	imageRoom = 1 << 20
	imageMost = 1 << 39
	// imageFD is the lowest number of its descriptor.
	imageFD = 1000
	// mostTLS is how much thread-local storage package child makes room for.
	mostTLS = 512
)

// newImage makes the image, or says why there can be none.
func newImage() (*Way, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	file, err := imageOf(exe)
	if err != nil {
		exe.Close()
		return nil, err
	}
	return newWay(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), int(file.Fd())-8, exe, file)
}

func imageOf(exe io.ReaderAt) (*os.File, error) {
	header, segments, err := readELF(exe)
	if err != nil {
		return nil, err
	}
	code, entry := child.Image()
	bias, err := loadBias(header)
	if err != nil {
		return nil, err
	}
	if !executes(segments, uint64(entry)-bias) {
		return nil, errNotOurs
	}
	if header.kind != elfExec {
		return nil, errors.New("a position-independent executable's data is not as in its file")
	}
	table, err := mappings(segments, uint64(os.Getpagesize()))
	if err != nil {
		return nil, err
	}
	table.Entry = uint64(entry)
	at, err := placeOf(segments)
	if err != nil {
		return nil, err
	}
	return sealImage(layImage(header.machine, at, code, table))
}

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

// mappings are those by which the kernel would load the segments (load_elf_binary).
func mappings(segments []elfSegment, page uint64) (wire.Table, error) {
	var t wire.Table
	n := 0
	add := func(m wire.Mapping) {
		if n < len(t.Mappings)-1 { // the last stays empty: it ends the list
			t.Mappings[n] = m
		}
		n++
	}
	for _, s := range segments {
		if s.kind == segTLS && s.memory > mostTLS {
			return t, errors.New("the executable has too much thread-local storage")
		}
		if s.kind != segLoad || s.memory == 0 {
			continue
		}
		prot := uint64(0)
		for _, p := range [][2]uint64{{segRead, unix.PROT_READ}, {segWrite, unix.PROT_WRITE}, {segExec, unix.PROT_EXEC}} {
			if uint64(s.flags)&p[0] != 0 {
				prot |= p[1]
			}
		}
		from, data := s.addr&^(page-1), s.addr+s.fileSize
		filled := (data + page - 1) &^ (page - 1)
		if s.fileSize > 0 {
			add(wire.Mapping{Addr: from, Len: data - from, Prot: prot, Flags: unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE, Off: s.off &^ (page - 1)})
		} else {
			filled = from
		}
		end := (s.addr + s.memory + page - 1) &^ (page - 1)
		if end > filled {
			add(wire.Mapping{Addr: filled, Len: end - filled, Prot: prot, Flags: unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE | unix.MAP_ANONYMOUS})
		}
		if s.memory > s.fileSize && s.fileSize > 0 && filled > data {
			if t.ClearBytes > 0 {
				return t, errors.New("the executable has two segments with cleared data")
			}
			t.ClearAt, t.ClearBytes = data, filled-data
		}
	}
	if n >= len(t.Mappings) {
		return t, errors.New("the executable has too many segments")
	}
	return t, nil
}

// placeOf decides where the image lies: at imageAt, or above a program that
// leaves no room there, as one for arm64 does, which Go's linker puts at 0x10000.
func placeOf(segments []elfSegment) (uint64, error) {
	end, below := uint64(0), true
	for _, s := range segments {
		if s.kind != segLoad || s.memory == 0 {
			continue
		}
		if s.addr >= imageMost || s.memory >= imageMost {
			return 0, errors.New("the executable leaves no room for the image")
		}
		end, below = max(end, s.addr+s.memory), below && s.addr >= imageAt+imageRoom
	}
	if below {
		return imageAt, nil
	}
	at := (end + 2*imageRoom) &^ (imageRoom - 1)
	if at+imageRoom > imageMost {
		return 0, errors.New("the executable leaves no room for the image")
	}
	return at, nil
}

// layImage lays the file out: headers, then the code on a boundary of 64 bytes.
func layImage(machine uint16, at uint64, code []byte, t wire.Table) []byte {
	const says = "holdfast: " + wire.NotByASandbox + "\n"
	const codeAt = 256
	size := uint64(codeAt + wire.ImageSays + len(says))
	t.Says = uint64(len(says))
	segments := [2]elfSegment{
		{kind: segLoad, flags: segRead | segExec, addr: at, fileSize: size, memory: size, align: 1 << 16},
		{kind: segStack, flags: segRead | segWrite, align: 16}, // a stack that is not executed
	}
	h := elfHeader{ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, kind: elfExec, machine: machine, version: 1, entry: at + codeAt,
		segments: uint64(unsafe.Sizeof(elfHeader{})), size: uint16(unsafe.Sizeof(elfHeader{})),
		segmentSize: uint16(unsafe.Sizeof(elfSegment{})), segmentCount: uint16(len(segments))}
	b := make([]byte, size)
	copy(b, bytesOf(&h))
	copy(b[h.segments:], bytesOf(&segments))
	copy(b[codeAt:], code)
	copy(b[codeAt+wire.ImageTable:], bytesOf(&t))
	copy(b[codeAt+wire.ImageSays:], says)
	return b
}

// sealImage puts the image into a memfd that can be executed and not changed, at
// a high descriptor.
func sealImage(image []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	low, err := unix.MemfdCreate("holdfast-stage", flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3, where every memfd can be executed
		low, err = unix.MemfdCreate("holdfast-stage", flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(low)
	for done := 0; done < len(image); {
		n, err := unix.Pwrite(low, image[done:], int64(done))
		if err != nil {
			return nil, os.NewSyscallError("pwrite", err)
		}
		done += n
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(low), unix.F_ADD_SEALS, seals); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, highNumber())
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "holdfast stage"), nil
}

// highNumber is imageFD, or what the limit on descriptors leaves.
func highNumber() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < imageFD+64 {
		return int(l.Cur) / 2
	}
	return imageFD
}
