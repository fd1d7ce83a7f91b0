package launch

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

// The trampoline is an ELF file in memory, with one segment: its code, then at codeRoom
// the table of mappings, then at tableEnd what it says when it cannot go on. It is made once in a
// process, is sealed, and can be executed as often as there are runs; see package child for why.
//
// Its descriptor has a number above those of most tools, which os/exec's Path names. The harness's
// executable is opened once, too, and given to each stage: its path may be gone.

const (
	codeRoom = 512
	tableEnd = 1024
)

// A table is what the trampoline has to do: the mappings to make, up to one of length
// 0; bytes to clear; where to jump. The mappings are of the harness's executable,
// whose descriptor is the program's plus two, or of no file.
type table struct {
	entry      uint64
	clearAt    uint64
	clearBytes uint64
	says       uint64 // the length of what lies at tableEnd
	mappings   [12]mapping
}

// A mapping is the arguments of one mmap(2).
type mapping struct{ addr, len, prot, flags, off uint64 }

func trampoline()
func trampolineAddr() uintptr

var _ = trampoline // the assembly uses it

// code returns the trampoline's code, to be copied.
func code() []byte {
	at := trampolineAddr()
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), codeRoom)
}

const (
	// lowAddr is where the trampoline lies if it can: below programs for amd64, above
	// vm.mmap_min_addr. room is more than it needs, addrEnd the end of the
	// smallest address space that arm64 commonly has, of 39 bits.
	lowAddr = 0x200000
	room    = 1 << 20
	addrEnd = 1 << 39
	// lowestFD is the lowest number of its descriptor. A process begins with a table of 64. For a higher one the kernel makes another,
	// and waits, if the program has threads, until no processor reads the old one (expand_fdtable in fs/file.c): 5 ms and more.
	lowestFD = 40
)

func newTrampoline() (*Launcher, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	file, err := build(exe)
	if err != nil {
		exe.Close()
		return nil, err
	}
	return newLauncher(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), exe, file)
}

// build makes the trampoline for an executable, in a memfd.
func build(exe io.ReaderAt) (*os.File, error) {
	header, segments, err := readELF(exe)
	if err != nil {
		return nil, err
	}
	entry := child.Entry()
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
	t, err := mappings(segments, uint64(os.Getpagesize()))
	if err != nil {
		return nil, err
	}
	t.entry = uint64(entry)
	at, err := placeOf(segments)
	if err != nil {
		return nil, err
	}
	return seal(lay(header.machine, at, code(), t))
}

// mappings are those by which the kernel would load the segments (load_elf_binary).
func mappings(segments []elfSegment, page uint64) (table, error) {
	var t table
	n := 0
	add := func(m mapping) {
		if n < len(t.mappings)-1 { // the last stays empty: it ends the list
			t.mappings[n] = m
		}
		n++
	}
	for _, s := range segments {
		if s.kind == segTLS && s.memory > child.MaxTLS {
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
			add(mapping{addr: from, len: data - from, prot: prot, flags: unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE, off: s.off &^ (page - 1)})
		} else {
			filled = from
		}
		end := (s.addr + s.memory + page - 1) &^ (page - 1)
		if end > filled {
			add(mapping{addr: filled, len: end - filled, prot: prot, flags: unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE | unix.MAP_ANONYMOUS})
		}
		if s.memory > s.fileSize && s.fileSize > 0 && filled > data {
			if t.clearBytes > 0 {
				return t, errors.New("the executable has two segments with cleared data")
			}
			t.clearAt, t.clearBytes = data, filled-data
		}
	}
	if n >= len(t.mappings) {
		return t, errors.New("the executable has too many segments")
	}
	return t, nil
}

// placeOf decides where the trampoline lies: at lowAddr, or above a program that
// leaves no room there, as one for arm64 does, which Go's linker puts at 0x10000.
func placeOf(segments []elfSegment) (uint64, error) {
	end, below := uint64(0), true
	for _, s := range segments {
		if s.kind != segLoad || s.memory == 0 {
			continue
		}
		if s.addr >= addrEnd || s.memory >= addrEnd {
			return 0, errors.New("the executable leaves no room for the trampoline")
		}
		end, below = max(end, s.addr+s.memory), below && s.addr >= lowAddr+room
	}
	if below {
		return lowAddr, nil
	}
	at := (end + 2*room) &^ (room - 1)
	if at+room > addrEnd {
		return 0, errors.New("the executable leaves no room for the trampoline")
	}
	return at, nil
}

// lay lays the file out: headers, then the code on a boundary of 64 bytes.
func lay(machine uint16, at uint64, code []byte, t table) []byte {
	const says = "holdfast: " + wire.NotByASandbox + "\n"
	const codeAt = 256
	size := uint64(codeAt + tableEnd + len(says))
	t.says = uint64(len(says))
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
	copy(b[codeAt+codeRoom:], bytesOf(&t))
	copy(b[codeAt+tableEnd:], says)
	return b
}

// seal puts the trampoline into a memfd that can be executed and not changed.
func seal(image []byte) (*os.File, error) {
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
	number := lowestFD
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < lowestFD+64 {
		number = max(3, int(l.Cur)/2) // os/exec moves descriptors above it
	}
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, number)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "holdfast stage"), nil
}
