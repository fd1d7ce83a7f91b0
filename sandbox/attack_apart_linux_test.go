package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// Root without CAP_NET_ADMIN cannot raise lo in a network namespace of its own user namespace: the sandbox's is of another one.

// ofNetwork is what takes capabilities over the network namespace, and into its user namespace. It prints the acts that succeed, and whether
// processes can meet on loopback.
var _ = offer(programs, "of the network", func(args []string) {
	runtime.LockOSThread()
	unix.Unshare(unix.CLONE_FS)
	try := func(name string, err error) {
		if err == nil {
			fmt.Println("GAINED:", name)
		} else {
			fmt.Println(name+":", err)
		}
	}
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
			c.Close()
			fmt.Println("loopback works")
		}
		l.Close()
	}
	s, _ := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	try("a forced buffer", unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20))
	_, err := unix.IoctlRetInt(s, unix.SIOCGSKNS)
	try("the socket's namespace", err)
	raw, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	try("a raw socket", err)
	packet, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	try("a packet socket", err)
	own, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fmt.Println(err)
	}
	try("the network namespace", unix.Setns(own, unix.CLONE_NEWNET))
	if r, err := unix.NewIfreq("lo"); err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING | unix.IFF_PROMISC)
		try("an interface's flags", unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r))
	}
	user, err := unix.IoctlRetInt(own, unix.NS_GET_USERNS)
	fmt.Println("its user namespace:", err)
	if err == nil { // a process with several threads enters none
		c := exec.Command(args[0], "--preserve-credentials", "--user=/proc/self/fd/3", "true")
		c.ExtraFiles = []*os.File{os.NewFile(uintptr(user), "user")}
		out, err := c.CombinedOutput()
		fmt.Printf("nsenter: %s", out)
		try("the user namespace", err)
	}
	try("a network namespace of its own", unix.Unshare(unix.CLONE_NEWNET))
	for _, fd := range []int{s, raw, packet, own} {
		unix.Close(fd)
	}
})

// nsenter is nsenter(1)'s place.
var nsenter, _ = exec.LookPath("nsenter")

// TestKernelAttackANetworkOfAnotherUserNamespace: without CAP_NET_ADMIN, and where no procfs can be mounted in a user namespace, as in Docker with
// SYS_ADMIN, root has all namespaces and a loopback. Its tool has no capability over the network, by no owner's right either.
func TestKernelAttackANetworkOfAnotherUserNamespace(t *testing.T) {
	kerneltest.Long(t)
	for _, w := range []walls{sharedPIDs, {name: noOwnProc + ", pivot_root and Landlock", without: append([]kerneltest.Feature{kerneltest.PivotRoot, kerneltest.Landlock}, sharedPIDs.without...)}} {
		t.Run(w.name, func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: w.without}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr, kerneltest.Command("nsenter"))
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_ADMIN, 0, 0, 0); err != nil { // of what this thread executes
					t.Fatal(err)
				}
				w.may = nil
				f := Probe()
				if !f.Namespaces.Yes() || f.UserNS || f.SharedPIDs || !f.NetApart || f.Chroot != slices.Contains(w.without, kerneltest.PivotRoot) {
					t.Fatalf("%+v", f)
				}
				for _, calls := range []bool{false, true} {
					w.noCalls = calls
					c := hostile(t, attackSandbox(t, attackPolicy(t, "", w), w), "of the network", nsenter)
					out, err := c.CombinedOutput()
					if err != nil || strings.Contains(string(out), "GAINED") || !strings.Contains(string(out), "loopback works") || strings.Count(string(out), "peration not permitted") < 5 {
						t.Errorf("%v\n%s", err, out)
					}
					if text := c.Report().String(); weaknesses(c.Report()) != "" || !strings.Contains(text, "no CAP_NET_ADMIN here") {
						t.Error(text)
					}
				}
				w.noCalls = false
				for _, list := range []string{"changing", "mounting"} {
					attackWith(t, list, w, nil)
				}
				control := hostileBare(t, "of the network", nsenter)
				control.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: []syscall.SysProcIDMap{{Size: 1}}, GidMappings: []syscall.SysProcIDMap{{Size: 1}}}
				if out, err := control.CombinedOutput(); err != nil || strings.Count(string(out), "GAINED") < 5 {
					t.Errorf("with every capability over the network: %v\n%s", err, out)
				}
			})
		})
	}
}

// TestKernelASessionInANetworkOfAnotherUserNamespace: its commands share loopback.
func TestKernelASessionInANetworkOfAnotherUserNamespace(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: sharedPIDs.without}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
		w := walls{name: sharedPIDs.name}
		if err := errors.Join(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_ADMIN, 0, 0, 0), os.Chdir("/")); err != nil {
			t.Fatal(err)
		}
		s, err := attackSandbox(t, attackPolicy(t, "", w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if out := outputOf(t, s.program("of the network", nsenter)); strings.Contains(out, "GAINED") || !strings.Contains(out, "loopback works") {
			t.Error(out)
		}
	})
}
