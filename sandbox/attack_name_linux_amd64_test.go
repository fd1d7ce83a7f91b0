package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// renamer is a program of 64-bit code that takes init's name at its first
// instruction, waits for the end of its input, and ends.
func renamer() []byte {
	code := []byte{
		0xb8, 157, 0, 0, 0, // mov $prctl, %eax
		0xbf, 15, 0, 0, 0, // mov $PR_SET_NAME, %edi
		0x48, 0x8d, 0x35, 30, 0, 0, 0, // lea name(%rip), %rsi
		0x0f, 0x05, // syscall
		0x31, 0xc0, // xor %eax, %eax: read
		0x31, 0xff, // xor %edi, %edi
		0x48, 0x89, 0xe6, // mov %rsp, %rsi
		0xba, 1, 0, 0, 0, // mov $1, %edx
		0x0f, 0x05, // syscall
		0xb8, 231, 0, 0, 0, // mov $exit_group, %eax
		0x31, 0xff, // xor %edi, %edi
		0x0f, 0x05, // syscall
		0x90, 0x90, 0x90, 0x90, 0x90,
	}
	code = append(code, "holdfast/init\x00"...)
	return elf64(code)
}

// elf64 makes a static program of one segment.
func elf64(code []byte) []byte {
	const base, headers = 0x400000, 64 + 56
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2)  // ET_EXEC
	b = le.AppendUint16(b, 62) // EM_X86_64
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+headers) // entry
	b = le.AppendUint64(b, 64)           // program headers
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // readable, executable
	size := uint64(headers + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}

// Init knows that the tool was executed by the name of its process. A tool that
// takes the name of one that was not must not make Start wait.
func TestKernelAttackTakingInitsName(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		tool := filepath.Join(base, "read", "renamer")
		if err := os.WriteFile(tool, renamer(), 0o755); err != nil {
			t.Fatal(err)
		}
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		for i := range 300 {
			c := s.Command(tool)
			c.Dir = "/"
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			started := make(chan error, 1)
			go func() { started <- c.Start() }()
			select {
			case err = <-started:
			case <-time.After(time.Minute):
				t.Fatalf("ESCAPE: Start waits for the tool, in run %d", i)
			}
			in.Close()
			if err == nil {
				err = c.Wait()
			}
			if err != nil {
				t.Fatalf("run %d: %v", i, err)
			}
		}
	})
}
