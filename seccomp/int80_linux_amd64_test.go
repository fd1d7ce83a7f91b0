package seccomp

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// exit7 ends a process with status 7 by the 32-bit system call: mov eax, 1; mov ebx, 7; int 0x80. The bytes mean the same in 64-bit code.
var exit7 = []byte{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80}

// elf64 and elf32 return static programs of one segment, which is the file itself, mapped at 0x400000.
func elf64(code []byte) []byte {
	const header = 64 + 56
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(le.AppendUint16(b, 2), 62) // an executable, for x86-64
	b = le.AppendUint32(b, 1)
	for _, v := range []uint64{0x400000 + header, 64, 0} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(le.AppendUint32(b, 1), 5) // load, to be read and executed
	for _, v := range []uint64{0, 0x400000, 0x400000, uint64(header + len(code)), uint64(header + len(code)), 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}

func elf32(code []byte) []byte {
	const header = 52 + 32
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(le.AppendUint16(b, 2), 3) // an executable, for i386
	for _, v := range []uint32{1, 0x400000 + header, 52, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	for _, v := range []uint32{1, 0, 0x400000, 0x400000, uint32(header + len(code)), uint32(header + len(code)), 5, 0x1000} {
		b = le.AppendUint32(b, v)
	}
	return append(b, code...)
}

// end returns how a program ended.
func end(t *testing.T, path string) syscall.WaitStatus {
	t.Helper()
	err := exec.Command(path).Run()
	var e *exec.ExitError
	if !errors.As(err, &e) {
		t.Fatalf("%s: %v", path, err)
	}
	return e.Sys().(syscall.WaitStatus)
}

func TestKernelA32BitProgramAndA32BitCallAreKilledUnderEveryProfile(t *testing.T) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					dir := t.TempDir()
					programs := map[string][]byte{"int80": elf64(exit7), "program32": elf32(exit7)}
					for file, b := range programs {
						if err := os.WriteFile(filepath.Join(dir, file), b, 0o755); err != nil {
							t.Fatal(err)
						}
						if err := exec.Command(filepath.Join(dir, file)).Run(); err == nil || err.Error() != "exit status 7" {
							t.Skipf("this kernel runs no 32-bit calls (CONFIG_IA32_EMULATION, ia32_emulation=): %s: %v", file, err)
						}
					}
					loadHere(t, profile())
					for file := range programs {
						if ws := end(t, filepath.Join(dir, file)); ws.Signal() != unix.SIGSYS {
							t.Errorf("%s ended with %#x", file, uint32(ws))
						}
					}
				})
			})
		})
	}
}

func TestKernelAnX32NumberIsRefusedUnderEveryProfile(t *testing.T) {
	for name, profile := range profiles {
		t.Run(name, func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
				loadHere(t, profile())
				for _, nr := range []uint32{x32Bit | 39, x32Bit | 41, x32Bit | 520, 1<<32 - 1} {
					if got := invokeNumber(nr, [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}); got != unix.ENOSYS {
						t.Errorf("%#x: %v", nr, got)
					}
				}
			})
		})
	}
}
