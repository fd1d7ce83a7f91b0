package seccomp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
)

func TestTheTableIsSortedByNameAndHasEachNumberOnce(t *testing.T) {
	for _, a := range arches {
		seen := map[uint32]string{}
		for i, e := range table {
			if i > 0 && table[i-1].name >= e.name {
				t.Errorf("%s comes after %s", e.name, table[i-1].name)
			}
			n, ok := e.number(a)
			if !ok {
				continue
			}
			if seen[n] != "" {
				t.Errorf("%v: %d is %s and %s", a, n, seen[n], e.name)
			}
			seen[n] = e.name
			if got, ok := nameOf(a, n); !ok || got != e.name {
				t.Errorf("nameOf(%v, %d) = %q, want %q", a, n, got, e.name)
			}
		}
	}
	for _, e := range table {
		if i := find(e.name); i < 0 || table[i] != e {
			t.Errorf("find(%q) = %d", e.name, i)
		}
	}
	for _, name := range []string{"", "a", "zzz", "READ", "read ", "\x00"} {
		if find(name) >= 0 {
			t.Errorf("find(%q) found something", name)
		}
	}
}

// The generator corrects go-seccomp-bpf's arm64 table in these places and adds the newest calls; see gen_table.go.
func TestTheTableAgreesWithGoSeccompBPFExceptWhereThatIsWrong(t *testing.T) {
	for _, oracle := range []struct {
		arch  Arch
		info  *arch.Info
		wrong func(name string, nr int) bool
	}{
		{AMD64, arch.X86_64, func(string, int) bool { return false }},
		{ARM64, arch.AARCH64, func(name string, nr int) bool { return name == "fstatat" || nr == 244 || nr >= 403 && nr <= 423 }},
	} {
		for name, nr := range oracle.info.SyscallNames {
			if oracle.wrong(name, nr) {
				continue
			}
			c, err := NewCall(oracle.arch, name)
			if err != nil || int(c.Nr) != nr {
				t.Errorf("%v %s = %d, %v; go-seccomp-bpf says %d", oracle.arch, name, c.Nr, err, nr)
			}
		}
	}
}

// x/sys/unix is made from the kernel's headers, apart from go-seccomp-bpf. Its source is read
// because it has constants for one architecture at a time.
func TestTheTableHasExactlyTheSyscallsOfTheKernelsHeaders(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("no source of golang.org/x/sys here: go list: %v", err)
	}
	constant := regexp.MustCompile(`(?m)^\tSYS_([A-Z0-9_]+)\s+= (\d+)$`)
	for _, a := range arches {
		src, err := os.ReadFile(filepath.Join(dir, "unix", "zsysnum_linux_"+a.String()+".go"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, m := range constant.FindAllSubmatch(src, -1) {
			want[string(bytes.ToLower(m[1]))] = string(m[2])
		}
		delete(want, "arch_specific_syscall") // a place holder
		got := map[string]string{}
		for _, e := range table {
			if n, ok := e.number(a); ok {
				got[e.name] = strconv.Itoa(int(n))
			}
		}
		for name, nr := range want {
			if got[name] != nr {
				t.Errorf("%v %s = %q, the headers say %s", a, name, got[name], nr)
			}
		}
		for name := range got {
			if want[name] == "" {
				t.Errorf("%v %s is not in the headers", a, name)
			}
		}
	}
}

func TestAMisspeltNameGetsTheNearestOneAndAFarOneGetsNone(t *testing.T) {
	for name, want := range map[string]string{
		"opne": "open", "openat3": "openat", "sockett": "socket", "Read": "read", "process_vm_read": "process_vm_readv",
		"": "", "xyzzyxyzzyq": "", strings.Repeat("a", 100000): "",
	} {
		if got := closest(name); got != want {
			t.Errorf("closest(%.20q) = %q, want %q", name, got, want)
		}
	}
}
