package supervisor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// evaluate runs a program on one call, as the kernel would.
func evaluate(t *testing.T, p []SockFilter, arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	acc := uint32(0)
	for pc, steps := 0, 0; steps < 4096; steps++ {
		i := p[pc]
		pc++
		yes := false
		switch i.Code {
		case bpfLoad:
			switch n := int(i.K-dataArgs) / 8; {
			case i.K == dataNR:
				acc = nr
			case i.K == dataArch:
				acc = arch
			case n < len(args):
				acc = uint32(args[n])
			default:
				acc = 0
			}
			continue
		case bpfMask:
			acc &= i.K
			continue
		case bpfRet:
			return i.K
		case bpfEqual:
			yes = acc == i.K
		case bpfSet:
			yes = acc&i.K != 0
		case bpfOver:
			yes = acc >= i.K
		default:
			t.Fatalf("instruction %#x", i.Code)
		}
		if yes {
			pc += int(i.JT)
		} else {
			pc += int(i.JF)
		}
	}
	t.Fatal("no return")
	return 0
}

func TestFilter(t *testing.T) {
	const creat, wr, rd, trunc = 0x40, 1, 0, 0x200
	cases := []struct {
		name       string
		amd, arm   int // numbers; -1 where the architecture has none
		args       []uint64
		want, hide uint32
	}{
		{"open for reading", 2, -1, []uint64{0, rd}, retAllow, retNotify},
		{"open for writing", 2, -1, []uint64{0, wr}, retNotify, retNotify},
		{"openat for reading", 257, 56, []uint64{0, 0, rd}, retAllow, retNotify},
		{"openat for writing", 257, 56, []uint64{0, 0, wr}, retNotify, retNotify},
		{"openat for both", 257, 56, []uint64{0, 0, 2}, retNotify, retNotify},
		{"openat that creates", 257, 56, []uint64{0, 0, creat}, retNotify, retNotify},
		{"openat that truncates", 257, 56, []uint64{0, 0, trunc}, retNotify, retNotify},
		{"openat with bits above 32", 257, 56, []uint64{0, 0, 1<<40 | wr}, retNotify, retNotify},
		{"openat with O_PATH, which never writes", 257, 56, []uint64{0, 0, openPath | wr | creat}, retAllow, retAllow},
		{"openat2", 437, 437, nil, retErrno | errnoSys, retErrno | errnoSys},
		{"open_by_handle_at", 304, 265, nil, retErrno | errnoPerm, retErrno | errnoPerm},
		{"io_uring_setup", 425, 425, nil, retErrno | errnoSys, retErrno | errnoSys},
		{"setxattr", 188, 5, nil, retNotify, retNotify},
		{"fremovexattr", 199, 16, nil, retNotify, retNotify},
		{"setxattrat", 463, 463, nil, retErrno | errnoSys, retErrno | errnoSys},
		{"removexattrat", 466, 466, nil, retErrno | errnoSys, retErrno | errnoSys},
		{"mkdirat", 258, 34, nil, retNotify, retNotify},
		{"mknodat", 259, 33, nil, retNotify, retNotify},
		{"renameat2", 316, 276, nil, retNotify, retNotify},
		{"linkat", 265, 37, nil, retNotify, retNotify},
		{"symlinkat", 266, 36, nil, retNotify, retNotify},
		{"unlinkat", 263, 35, nil, retNotify, retNotify},
		{"truncate", 76, 45, nil, retNotify, retNotify},
		{"fchmod", 91, 52, nil, retNotify, retNotify},
		{"fchmodat", 268, 53, nil, retNotify, retNotify},
		{"fchmodat2", 452, 452, nil, retNotify, retNotify},
		{"bind", 49, 200, nil, retNotify, retNotify},
		{"creat", 85, -1, nil, retNotify, retNotify},
		{"prctl that would hide the memory", 157, 167, []uint64{4, 0}, retErrno, retErrno},
		{"prctl that shows it", 157, 167, []uint64{4, 1}, retAllow, retAllow},
		{"another prctl", 157, 167, []uint64{38, 0}, retAllow, retAllow},
		{"ptrace that seizes to stop it at its end", 101, 117, []uint64{0x4206, 1, 0, 0x40}, retNotify, retNotify},
		{"ptrace that seizes with all options", 101, 117, []uint64{0x4206, 1, 0, 0x3000ff}, retNotify, retNotify},
		{"ptrace that sets the option", 101, 117, []uint64{0x4200, 1, 0, 0x40}, retNotify, retNotify},
		{"ptrace that sets the option by the old number", 101, 117, []uint64{21, 1, 0, 0x41}, retNotify, retNotify},
		{"ptrace with bits above 32", 101, 117, []uint64{1<<32 | 0x4206, 1, 0, 1<<40 | 0x40}, retNotify, retNotify},
		{"ptrace that seizes without the option", 101, 117, []uint64{0x4206, 1, 0, 0xbf}, retAllow, retAllow},
		{"ptrace that sets other options", 101, 117, []uint64{0x4200, 1, 0, 0x30003f}, retAllow, retAllow},
		{"ptrace that writes a word with that bit", 101, 117, []uint64{5, 1, 0, 0x40}, retAllow, retAllow},
		{"ptrace that attaches", 101, 117, []uint64{16, 1, 0, 0x40}, retAllow, retAllow},
		{"write", 1, 64, nil, retAllow, retAllow},
		{"x32", x32Bit | 257, -1, []uint64{0, 0, wr}, retKill, retKill},
	}
	for arch, audit := range map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64} {
		for _, hidden := range []bool{false, true} {
			p, err := Filter(arch, hidden)
			if err != nil {
				t.Fatal(err)
			}
			if got := evaluate(t, p, audit^1, 257, 0, 0, wr); got != retKill {
				t.Errorf("%s: a foreign architecture gets %#x", arch, got)
			}
			for _, c := range cases {
				nr, want := c.amd, c.want
				if arch == "arm64" {
					nr = c.arm
				}
				if hidden {
					want = c.hide
				}
				if nr < 0 {
					continue
				}
				if got := evaluate(t, p, audit, uint32(nr), c.args...); got != want {
					t.Errorf("%s, hidden %v, %s: %#x, want %#x", arch, hidden, c.name, got, want)
				}
			}
		}
	}
	if _, err := Filter("mips", false); !errors.Is(err, ErrArch) {
		t.Errorf("mips: %v", err)
	}
}
