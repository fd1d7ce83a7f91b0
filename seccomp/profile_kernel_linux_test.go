package seccomp

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// What becomes of calls once Default is loaded. Some the kernel alone would refuse an ordinary
// user; that the profile refuses them too, TestProfileFacts shows.
func TestKernelDefaultRefusesWhatItSays(t *testing.T) {
	const high = 1 << 32
	cases := []struct {
		what string
		name string
		args []uint64
		want unix.Errno
	}{
		{"a local socket", "socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, 0},
		{"TCP", "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.IPPROTO_TCP}, 0},
		{"UDP", "socket", []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, 0},
		{"netlink for routes", "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE}, 0},
		{"netlink for kobject events", "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, unix.EPROTONOSUPPORT},
		{"netlink diagnostics", "socket", []uint64{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_SOCK_DIAG}, unix.EPROTONOSUPPORT},
		{"MPTCP", "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT},
		{"raw IP", "socket", []uint64{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
		{"a packet socket", "socket", []uint64{unix.AF_PACKET, unix.SOCK_DGRAM, 0}, unix.EAFNOSUPPORT},
		{"vsock", "socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, unix.EAFNOSUPPORT},
		{"vsock with a high bit", "socket", []uint64{unix.AF_VSOCK | high, unix.SOCK_STREAM, 0}, unix.EAFNOSUPPORT},
		{"AF_ALG", "socket", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, unix.EAFNOSUPPORT},
		{"unshare of a user namespace", "unshare", []uint64{unix.CLONE_NEWUSER}, unix.EPERM},
		{"unshare of the file table", "unshare", []uint64{unix.CLONE_FILES}, unix.EPERM},
		{"clone3", "clone3", []uint64{0, 0}, unix.ENOSYS},
		{"io_uring", "io_uring_setup", []uint64{1, 0}, unix.ENOSYS},
		{"the session keyring", "keyctl", []uint64{unix.KEYCTL_GET_KEYRING_ID, 0xfffffffd, 0}, unix.EPERM},
		{"bpf", "bpf", []uint64{99, 0, 0}, unix.EPERM},
		{"userfaultfd", "userfaultfd", []uint64{^uint64(0)}, unix.EPERM},
		{"mount", "mount", []uint64{0, 0, 0, 0, 0}, unix.EPERM},
		{"no random layout", "personality", []uint64{0x0040000}, 0},
		{"data that can be executed", "personality", []uint64{0x0400000}, unix.EPERM},
		{"data that can be executed, and no random layout", "personality", []uint64{0x0440000}, unix.EPERM},
		{"the personality again", "personality", []uint64{0}, 0},
		{"asking for the personality", "personality", []uint64{0xffffffff}, 0},
		{"a filter on top, malformed", "seccomp", []uint64{unix.SECCOMP_SET_MODE_FILTER, 0, 0}, unix.EFAULT},
	}
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			bare := map[string]unix.Errno{} // a container's filter may refuse what Default allows
			for _, c := range cases {
				if c.want == 0 {
					bare[c.what] = invoke(t, c.name, c.args...)
				}
			}
			loadHere(t, Default())
			for _, c := range cases {
				if got := invoke(t, c.name, c.args...); got != c.want && (c.want != 0 || got != bare[c.what]) {
					t.Errorf("%s: %v, want %v", c.what, got, c.want)
				}
			}
		})
	})
}

func TestKernelDefaultRefusesNewNamespacesByCloneAndAllowsProcesses(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			loadHere(t, Default())
			if err := exec.Command("true").Run(); err != nil {
				t.Error(err)
			}
			for _, flag := range []uintptr{unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC, unix.CLONE_NEWUSER,
				unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWUSER | unix.CLONE_NEWNS} {
				cmd := exec.Command("true")
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
				if err := cmd.Run(); !errors.Is(err, unix.EPERM) {
					t.Errorf("%#x: %v", flag, err)
				}
			}
		})
	})
}

// CVE-2017-5226: a program with its own terminal types into it. The terminal is the child's controlling one, else the kernel refuses by itself.
func TestKernelDefaultRefusesTypingIntoTheTerminal(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			signal.Ignore(unix.SIGHUP) // which closing it sends
			if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
				t.Fatal(err)
			}
			slave, err := unix.IoctlRetInt(int(master.Fd()), unix.TIOCGPTPEER)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
				t.Fatal(err)
			}
			key := byteAddress(new(byte))
			commands := []uint64{tiocsti, tiocsti | 1<<32, tioclinux, tioclinux | 1<<63, tiocsetd | 1<<40}
			if got := invoke(t, "ioctl", uint64(slave), tiocsti, key); got == unix.EPERM {
				t.Errorf("the kernel refuses by itself, so that this test shows nothing")
			}
			loadHere(t, Default())
			for _, command := range commands {
				if got := invoke(t, "ioctl", uint64(slave), command, key); got != unix.EPERM {
					t.Errorf("%#x: %v", command, got)
				}
			}
			if _, err := unix.IoctlGetTermios(slave, unix.TCGETS); err != nil {
				t.Error(err)
			}
		})
	})
}

// byteAddress returns where b is, for a call that takes a pointer.
func byteAddress(b *byte) uint64 { return uint64(uintptr(unsafe.Pointer(b))) }
