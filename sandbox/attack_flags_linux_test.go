package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// The tool that changes what a file's owner can by a descriptor for reading, and prints what came of it.
var _ = offer(programs, "inode flags", func(args []string) {
	fd, err := unix.Open(args[0], unix.O_RDONLY, 0)
	fmt.Println("open:", err)
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	fmt.Println("ask:", err)
	flags |= nodump
	version, more, policy := 7, [7]uint32{}, [3]uint32{}
	for _, c := range []struct {
		name    string
		command uintptr
		arg     unsafe.Pointer
	}{
		{"flags", unix.FS_IOC_SETFLAGS, unsafe.Pointer(&flags)}, {"more flags", 0x401c5820, unsafe.Pointer(&more)},
		{"version", 0x40087602, unsafe.Pointer(&version)}, {"old version", 0x40086604, unsafe.Pointer(&version)},
		{"extents", 0x6609, nil}, {"blocks", 0x660c, nil}, {"FAT's attributes", 0x40047211, nil},
		{"encryption", unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy)}, {"verity", unix.FS_IOC_ENABLE_VERITY, nil},
	} {
		fmt.Printf("%s: %v\n", c.name, rawCall(unix.SYS_IOCTL, uintptr(fd), c.command, uintptr(c.arg)))
	}
	const setAttributes, flagNoDump = 469, 0x80 // file_setattr(2) and FS_XFLAG_NODUMP, Linux 6.17
	name, attributes := [1]byte{}, [3]uint64{flagNoDump}
	fmt.Println("file_setattr:", rawCall(setAttributes, uintptr(fd), pointerTo(&name), pointerTo(&attributes), unsafe.Sizeof(attributes), unix.AT_EMPTY_PATH))
})

// TestKernelInodeFlagsOutsideStayAsTheyAre: without mounts the profile keeps them, of files that are shown to read.
func TestKernelInodeFlagsOutsideStayAsTheyAre(t *testing.T) {
	withoutNamespaces(t, 1, func(t *testing.T) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(os.Getenv("HOME"), "shown")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.May = []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}
		p.Files.Read = append(p.Files.Read, file, exe)
		var lines []string
		for _, profile := range []seccomp.Filter{p.Syscalls, seccomp.Off()} {
			p.Syscalls = profile
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			out, err := hostile(t, s, "inode flags", file).CombinedOutput()
			lines = slices.Collect(strings.Lines(string(out)))
			if err != nil || len(lines) != 12 || lines[0] != "open: <nil>\n" {
				t.Fatalf("%v\n%s", err, out)
			}
			if lines[11] != "file_setattr: "+unix.ENOSYS.Error()+"\n" {
				t.Errorf("not refused: %s", lines[11])
			}
			for _, line := range lines[2:11] {
				if !strings.HasSuffix(line, ": "+unix.ENOTTY.Error()+"\n") {
					t.Errorf("not refused: %s", line)
				}
			}
		}
		bare, err := hostileBare(t, "inode flags", file).CombinedOutput()
		if !strings.Contains(string(bare), "\nflags: <nil>\n") {
			t.Skipf("the file system of %s has no inode flags: %v\n%s", file, err, bare)
		}
		if lines[1] != "ask: <nil>\n" {
			t.Errorf("flags cannot be asked for: %s", lines[1])
		}
	})
}
