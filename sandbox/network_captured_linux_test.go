package sandbox

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// CaptureForTest is the capture of package sandbox/capture, which this one cannot
// import: it imports this one.
var CaptureForTest func(device *os.File, gate policy.CaptureGate) (stop func(), err error)

// eachCaptured runs a body in a child for each user, who may open the TUN driver's
// node, as on most hosts, in mounts of the test's own.
func eachCaptured(t *testing.T, body func(t *testing.T)) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // it ends with the test
			if err := errors.Join(
				unix.Unshare(unix.CLONE_NEWNS),
				unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
				unix.Mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755"),
				unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))),
				os.Chmod("/dev/net/tun", 0o666),
			); err != nil {
				t.Fatal(err)
			}
		}
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.Fact{Name: "/dev/net/tun", Check: func() error {
				f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
				if err != nil {
					return err
				}
				return f.Close()
			}})
			body(t)
		})
	})
}

// TestKernelAttackCaptured: where the tool has a device through which everything
// goes, no more gets out.
func TestKernelAttackCaptured(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	for _, list := range []string{"network", "direct", "sockets"} {
		for _, w := range []walls{allSets[0], allSets[4]} {
			t.Run(list+", "+w.name, func(t *testing.T) {
				w.chosen(t, allSets)
				eachCaptured(t, func(t *testing.T) {
					if f := Probe().TUN; !f.Yes() {
						t.Fatal("nothing is captured: ", f.Reason)
					}
					serveHost(t)
					leaveOpen(t)
					attackPlainly(t, list)
					attackWith(t, list, w, func(base string, p *Policy) {
						p.Network = Network{Hosts: []string{"allowed.example"}, Capture: CaptureForTest}
					})
				})
			})
		}
	}
}
