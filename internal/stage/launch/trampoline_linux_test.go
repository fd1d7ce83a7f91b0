package launch

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/internal/stage/child"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// segments are those of a Go program as its linker lays them out.
var segments = []elfSegment{
	{kind: 6, flags: segRead, off: 64, addr: 0x400040, fileSize: 0x150, memory: 0x150},
	{kind: segLoad, flags: segRead | segExec, addr: 0x400000, fileSize: 0x1781f1, memory: 0x1781f1},
	{kind: segLoad, flags: segRead, off: 0x179000, addr: 0x579000, fileSize: 0x1000, memory: 0x1000},
	{kind: segLoad, flags: segRead | segWrite, off: 0x32d010, addr: 0x72d010, fileSize: 0x620, memory: 0x5000},
	{kind: segTLS, flags: segRead, memory: 8},
	{kind: segStack, flags: segRead | segWrite},
}

func with(change func(s []elfSegment)) []elfSegment {
	s := append([]elfSegment(nil), segments...)
	change(s)
	return s
}

func TestTheTrampolineMapsWhatTheKernelWouldLoad(t *testing.T) {
	got, err := mappings(segments, 0x1000)
	if err != nil {
		t.Fatal(err)
	}
	const file, memory = unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE, unix.MAP_PRIVATE | unix.MAP_FIXED_NOREPLACE | unix.MAP_ANONYMOUS
	want := table{clearAt: 0x72d630, clearBytes: 0x9d0, mappings: [12]mapping{
		{addr: 0x400000, len: 0x1781f1, prot: unix.PROT_READ | unix.PROT_EXEC, flags: file},
		{addr: 0x579000, len: 0x1000, prot: unix.PROT_READ, flags: file, off: 0x179000},
		{addr: 0x72d000, len: 0x630, prot: unix.PROT_READ | unix.PROT_WRITE, flags: file, off: 0x32d000},
		{addr: 0x72e000, len: 0x5000, prot: unix.PROT_READ | unix.PROT_WRITE, flags: memory},
	}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(table{}, mapping{})); d != "" {
		t.Error(d)
	}
}

func TestAnExecutableThatNoTrampolineCanMapIsRefused(t *testing.T) {
	tests := []struct {
		name     string
		segments []elfSegment
		says     string
	}{
		{"much thread-local storage", with(func(s []elfSegment) { s[4].memory = child.MaxTLS + 1 }), "thread-local"},
		{"two segments with cleared data", with(func(s []elfSegment) { s[2].fileSize = 0xff0 }), "two segments"},
		{"many segments", append(with(func([]elfSegment) {}), bytesOfSegments(12)...), "too many"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := mappings(test.segments, 0x1000); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Error(err)
			}
		})
	}
}

// TestTheTrampolineLiesWhereTheProgramDoesNot: below it as Go links for amd64, above
// it as for arm64.
func TestTheTrampolineLiesWhereTheProgramDoesNot(t *testing.T) {
	at := func(addr, memory uint64) []elfSegment {
		return []elfSegment{{kind: segLoad, addr: addr, memory: memory}, {kind: segLoad, addr: addr, memory: 0x1000}, {kind: segStack, memory: 1 << 60}}
	}
	tests := []struct {
		name     string
		segments []elfSegment
		want     uint64 // 0: nowhere
	}{
		{"as Go links for amd64", segments, lowAddr},
		{"as Go links for arm64", at(0x10000, 0x251234), 0x400000},
		{"just above the trampoline", at(lowAddr+room, 0x1000), lowAddr},
		{"where the trampoline would lie", at(lowAddr+room-0x1000, 1<<30), lowAddr + 1<<30 + 2*room},
		{"as far up as can be", at(0x10000, addrEnd-0x10000-3*room), addrEnd - room},
		{"up to the end of the addresses", at(0x10000, addrEnd-0x10000-2*room), 0},
		{"far above every address", at(^uint64(0)-0xfff, 0x1000), 0},
		{"larger than the addresses", at(0x10000, ^uint64(0)-0xfff), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := placeOf(test.segments)
			if got != test.want || (err == nil) != (test.want > 0) {
				t.Errorf("%#x, %v; want %#x", got, err, test.want)
			}
		})
	}
}

func bytesOfSegments(n uint64) (list []elfSegment) {
	for i := range n {
		list = append(list, elfSegment{kind: segLoad, flags: segRead, addr: 0x1000000 * (i + 1), fileSize: 0x1000, memory: 0x1000})
	}
	return list
}

// TestNoELFFileIsRead: whatever /proc/self/exe may be.
func TestNoELFFileIsRead(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	head := func(change func(b []byte)) []byte {
		b := bytes.Clone(self[:4096])
		change(b)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "text": []byte(strings.Repeat("text", 100)), "a cut header": self[:40], "cut segments": self[:80],
		"32 bits": head(func(b []byte) { b[4] = 1 }), "no segments": head(func(b []byte) { b[56], b[57] = 0, 0 }), "many segments": head(func(b []byte) { b[57] = 0xff }),
	} {
		if _, _, err := readELF(bytes.NewReader(b)); err == nil {
			t.Errorf("%s is taken for an executable", name)
		}
	}
}

// TestTheTrampolineIsAnELFFile by another's reading of it.
func TestTheTrampolineIsAnELFFile(t *testing.T) {
	entry := child.Entry()
	const at = 0x7700000
	image := lay(uint16(elf.EM_X86_64), at, code(), table{entry: uint64(entry)})
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != elf.ET_EXEC || len(f.Progs) != 2 || f.Entry != at+256 {
		t.Errorf("%+v", f.FileHeader)
	}
	load, stack := f.Progs[0], f.Progs[1]
	if load.Type != elf.PT_LOAD || load.Flags != elf.PF_R|elf.PF_X || load.Filesz != uint64(len(image)) || load.Vaddr != at {
		t.Errorf("%+v", load.ProgHeader)
	}
	if stack.Type != elf.PT_GNU_STACK || stack.Flags&elf.PF_X != 0 {
		t.Errorf("its stack can be executed: %+v", stack.ProgHeader)
	}
	if !bytes.Equal(image[256:256+codeRoom], code()) {
		t.Error("the code is not at the entry")
	}
}

// TestTheTrampolinesVariableIsWhereItsCodeLooks: the assembly has the length of the
// variable's name and its first letters in it.
func TestTheTrampolinesVariableIsWhereItsCodeLooks(t *testing.T) {
	if first := Reexec.Layout(7).Env[0]; first != wire.FDName+"=7" || len(wire.FDName) != 19 || wire.FDName[:8] != "HOLDFAST" {
		t.Errorf("%q", first)
	}
}

// TestEachDescriptorIsWhereTheLayoutSays, and the trampoline is at its own whenever os/exec fills that.
func TestEachDescriptorIsWhereTheLayoutSays(t *testing.T) {
	const fd = 40
	exe, trampoline, program, control, gift := new(os.File), new(os.File), new(os.File), new(os.File), new(os.File)
	l := &Launcher{files: []*os.File{exe, trampoline}, fd: fd}
	for n := range 100 {
		var tools []*os.File
		for range n {
			tools = append(tools, new(os.File))
		}
		at, files := l.Layout(3+n), l.Files(tools, program, control, gift, gift, gift, gift)
		child := append(make([]*os.File, 3, 3+len(files)), files...)
		if child[at.Program] != program || child[at.Program+1] != control || child[at.Program+2] != exe || child[at.Given] != gift || len(child) != at.Given+4 {
			t.Fatalf("with %d files: %+v", n, at)
		}
		if len(child) > fd && (at.Swapped != fd || child[fd] != trampoline) {
			t.Errorf("with %d files another is at the trampoline's descriptor: %+v", n, at)
		}
		if at.Swapped > 0 {
			child[at.Swapped] = child[at.Program+3]
		}
		for i, f := range tools {
			if child[3+i] != f {
				t.Errorf("with %d files: %d is elsewhere: %+v", n, i, at)
			}
		}
		if n < 29 && (at.Swapped != 0 || at.Program != 3+n) {
			t.Errorf("with %d files: %+v", n, at)
		}
	}
}

// needTrampoline returns the trampoline. A program that lies where it was linked to has
// one, on every architecture.
func needTrampoline(t *testing.T) *Launcher {
	t.Helper()
	image, err := Trampoline()
	if err == nil {
		return image
	}
	exe, openErr := os.Open("/proc/self/exe")
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer exe.Close()
	if h, _, readErr := readELF(exe); readErr == nil && h.kind != elfExec || errors.Is(err, os.ErrPermission) {
		t.Skipf("there is no trampoline: %v", err)
	}
	t.Fatalf("there is no trampoline: %v", err)
	return nil
}

// TestKernelTheTrampolineCannotBeChanged by a stage, whose descriptor it is, or by a
// tool that got at it.
func TestKernelTheTrampolineCannotBeChanged(t *testing.T) {
	image := needTrampoline(t)
	f, err := os.OpenFile(image.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0x90}, 256); !errors.Is(err, unix.EPERM) {
		t.Errorf("write: %v", err)
	}
	if err := f.Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncate: %v", err)
	}
	if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("mmap: %v", err)
	}
}

// TestALauncherWhoseFilesWereClosedSaysSo, and so it does when another file has the number.
func TestALauncherWhoseFilesWereClosedSaysSo(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	way, err := newLauncher("/", f)
	if err != nil || way.Check() != nil {
		t.Fatal(err, way.Check())
	}
	other, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Dup3(int(other.Fd()), int(f.Fd()), unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := way.Check(); !errors.Is(err, unix.EBADF) {
		t.Errorf("another file has the number: %v", err)
	}
}
