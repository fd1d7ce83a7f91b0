package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "snapshots", trySnapshots), offer(programs, "harness on btrfs", onBtrfs)

// trySnapshots tries to make names in dir by btrfs's ioctls, and a copy of dir without what covers a file in it.
func trySnapshots(args []string) {
	dir, err := unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		fmt.Println("open:", err)
	}
	command := func(what string, request uintptr, source int, name string) {
		args := [4096]byte{} // struct btrfs_ioctl_vol_args: a descriptor and a name; of the second kind, with more between
		*(*int64)(unsafe.Pointer(&args)) = int64(source)
		at := 8
		if request&0xff >= 23 {
			at = 56
		}
		copy(args[at:], name)
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(dir), request, uintptr(unsafe.Pointer(&args)))
		fmt.Printf("%s: %v\n", what, e == 0)
	}
	command("subvolume", 0x5000940e, 0, ".vscode")
	command("subvolume with options", 0x50009418, 0, ".idea")
	command("snapshot of the first kind", 0x50009401, dir, "one")
	command("snapshot", 0x50009417, dir, "two")
	command("snapshot, the command with bits above", 1<<32|0x50009417, dir, "three")
	for _, copied := range []string{"one", "two", "three"} {
		if b, err := os.ReadFile(filepath.Join(args[0], copied, "conf/secret")); err == nil {
			fmt.Printf("READ %s", b)
		}
	}
	out, err := exec.Command("cp", "--reflink=always", filepath.Join(args[0], "plain"), filepath.Join(args[0], "clone")).CombinedOutput()
	fmt.Printf("clone: %v %s\n", err == nil, out)
}

// onBtrfs is a harness whose workspace is a subvolume.
func onBtrfs(args []string) {
	exe, _ := os.Executable()
	for _, off := range []bool{false, true} {
		p := Workspace(args[0])
		p.Files.Read = append(p.Files.Read, exe)
		p.Files.Hide = append(p.Files.Hide, filepath.Join(args[0], "conf/secret"))
		p.Files.Protect.Off = off
		if off {
			p.Syscalls = seccomp.Off()
		}
		s, err := New(p)
		if err != nil {
			fmt.Println(err)
			return
		}
		c := s.Command(exe)
		c.Args = []string{attackTool, "snapshots", args[0]}
		c.Dir = args[0]
		out, err := c.CombinedOutput()
		fmt.Printf("%s%v\n", out, err)
	}
}

// TestKernelBtrfsMakesNoNames: in a subvolume, which each user may snapshot, under the default profile and under none.
func TestKernelBtrfsMakesNoNames(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		if _, err := exec.LookPath("mkfs.btrfs"); err != nil {
			t.Skip("no mkfs.btrfs on this machine (Debian: btrfs-progs)")
		}
		if b, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(b), "\tbtrfs\n") {
			t.Skip("this kernel has no btrfs")
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		for _, user := range []string{"0", "65534"} {
			// A disk of its own, in a mount namespace of its own: it is gone with the process.
			cmd := exec.Command("unshare", "-m", "--propagation", "private", "bash", "-ec", `
				truncate -s 128M disk; mkfs.btrfs -q disk 2>/dev/null; mount -o loop disk /mnt; cd /mnt
				btrfs subvolume create ws >/dev/null; mkdir ws/conf home; echo TOPSECRET >ws/conf/secret; echo plain >ws/plain
				cp "$2" tool; chmod 755 . tool; chown -R $1:$1 ws home
				export HOME=/mnt/home TMPDIR=/mnt/home
				exec setpriv --reuid $1 --regid $1 --clear-groups bash -c 'exec -a `+attackTool+` ./tool "$@"' - "$3" /mnt/ws`, "-", user, exe)
			for run, inside := range map[string]bool{"snapshots": false, "harness on btrfs": true} {
				c := exec.Command(cmd.Path, append(cmd.Args[1:], run)...)
				c.Dir = t.TempDir()
				data, err := c.CombinedOutput()
				out := string(data)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				made := strings.Count(out, "subvolume: true") + strings.Count(out, "options: true") + strings.Count(out, "kind: true") + strings.Count(out, "snapshot: true")
				switch {
				case inside && (made > 0 || strings.Contains(out, "SECRET") || strings.Contains(out, "above: true") || strings.Count(out, "clone: true") != 2):
					t.Errorf("user %s, inside:\n%s", user, out)
				case !inside && (made != 4 || !strings.Contains(out, "READ TOPSECRET") || !strings.Contains(out, "clone: true")):
					t.Errorf("user %s, without a sandbox nothing is shown:\n%s", user, out)
				}
			}
		}
	})
}
