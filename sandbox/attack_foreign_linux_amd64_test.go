package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// exit7 ends a process with status 7 by a 32-bit system call: mov $1, %eax; mov
// $7, %ebx; int $0x80. The bytes mean the same in 64-bit code.
var exit7 = []byte{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80}

// elf32 makes a static 32-bit program of one segment.
func elf32(code []byte) []byte {
	const base, headers = 0x400000, 52 + 32
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, 3) // EM_386
	for _, v := range []uint32{1, base + headers, 52, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	size := uint32(headers + len(code))
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		b = le.AppendUint32(b, v)
	}
	return append(b, code...)
}

// compiled32 is a program for gcc -m32: it makes a socket of the machine's family
// by socketcall(2), which no table of 64-bit numbers knows, and ends with 7.
const compiled32 = `
static int call(int nr, int a, void *b) {
	int r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b) : "memory");
	return r;
}
void _start(void) {
	int args[3] = {40, 1, 0};
	call(102, 1, args);
	call(1, 7, 0);
}
`

// endOf says how a command ended: its status and nil, or an error.
func endOf(t *testing.T, run func() error) syscall.WaitStatus {
	t.Helper()
	var exit *exec.ExitError
	if err := run(); !errors.As(err, &exit) {
		t.Fatalf("it ended with %v", err)
	}
	return exit.Sys().(syscall.WaitStatus)
}

// A 32-bit program, and a 32-bit call of a 64-bit one, die of it in every
// sandbox: filters know the calls of one architecture by number.
func TestKernelAttackForeignCalls(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		base := makeGrounds(t, 1)
		read := groundOf(base, 0, 0).read
		programs := map[string][]byte{"a 32-bit call": elf64(exit7), "a 32-bit program": elf32(exit7)}
		if text := compile32(t, read); text != nil {
			programs["a compiled 32-bit program"] = text
		}
		for name, text := range programs {
			if err := os.WriteFile(filepath.Join(read, name), text, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command(filepath.Join(read, name)).Run(); err == nil || err.Error() != "exit status 7" {
				t.Skipf("this kernel makes no 32-bit calls (CONFIG_IA32_EMULATION, ia32_emulation=): %s: %v", name, err)
			}
		}
		s := attackSandbox(t, attackPolicy(t, base, w), w)
		for name := range programs {
			c := s.Command(filepath.Join(read, name))
			c.Dir = "/"
			if ws := endOf(t, c.Run); ws.Signal() != unix.SIGSYS {
				t.Errorf("ESCAPE: %s ended with %#x", name, uint32(ws))
			}
		}
	})
}

// compile32 compiles the program; nil: this machine cannot.
func compile32(t *testing.T, dir string) []byte {
	t.Helper()
	source, at := filepath.Join(dir, "source.c"), filepath.Join(dir, "compiled")
	if err := os.WriteFile(source, []byte(compiled32), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gcc", "-m32", "-nostdlib", "-static", "-fno-pic", "-fno-stack-protector", "-o", at, source).CombinedOutput()
	if err != nil {
		t.Logf("no compiler for 32 bits: %v\n%s", err, out)
		return nil
	}
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var _ = offer(attacks, "x32", x32Acts)

// x32 is the bit of a system call's number that makes it one of the x32 ABI.
const x32 = 0x40000000

// x32Acts make calls by their x32 numbers, which a filter that looks for the
// plain ones does not find. Most kernels do not have them (CONFIG_X86_X32_ABI).
var x32Acts = []act{
	{name: "ask for the process's number", tame: true, try: func(ground) error { return rawCall(x32 | unix.SYS_GETPID) }},
	{name: "a socket", tame: true, try: func(ground) error { return rawCall(x32|unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0) }},
	{name: "a call that only x32 has", tame: true, try: func(ground) error {
		return reached(rawCall(x32|520, 0, 0, 0), unix.EFAULT) // execve
	}},
}

func TestKernelAttackX32Calls(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, unsupervised, func(t *testing.T, w walls) {
		attackPlainly(t, "x32")
		attackWith(t, "x32", w, nil)
	})
}

// The supervisor's filter kills for it, which wins over an errno.
func TestKernelAttackX32CallUnderTheGuard(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		base := makeGrounds(t, 1)
		p := attackPolicy(t, base, walls{})
		p.Files.Protect = policy.Protect{}
		c := hostile(t, attackSandbox(t, p, walls{}), "x32", base, "0")
		if ws := endOf(t, c.Run); ws.Signal() != unix.SIGSYS {
			t.Errorf("ESCAPE: the tool ended with %#x", uint32(ws))
		}
	})
}
