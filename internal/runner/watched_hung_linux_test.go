package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"golang.org/x/sys/unix"
)

// TestKernelWatcherLeavesAFileSystemThatDoesNotAnswer: a look at one whose server is gone, here FUSE without a server, ends with the
// watcher's time. What else is looked at then is counted alone, and looked at again when the file system has answered.
func TestKernelWatcherLeavesAFileSystemThatDoesNotAnswer(t *testing.T) {
	const at = "HOLDFAST_TEST_MOUNT"
	if dir := os.Getenv(at); dir != "" {
		looksAtNoServer(t, dir)
		return
	}
	kerneltest.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount FUSE in a mount namespace")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse:", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestKernelWatcherLeavesAFileSystemThatDoesNotAnswer$", "-test.v")
	c.Env = append(os.Environ(), at+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // with mounts of its own, private ones
	out, err := c.CombinedOutput()
	if strings.Contains(string(out), "--- SKIP") || errors.Is(err, unix.EPERM) {
		t.Skipf("needs a mount namespace with FUSE: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func looksAtNoServer(t *testing.T, dir string) {
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("needs /dev/fuse to be opened:", err)
	}
	dead := filepath.Join(dir, "dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", dead, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		t.Skip("needs a mount of FUSE:", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "there"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w := newWatcher(&Sandbox{})
	w.sandbox.Plan.Namespaces.Mount = true
	look := func(p string) {
		w.add(supervisor.Denial{Deed: supervisor.DeedLook, Count: 1, Paths: [2]string{filepath.Join(dir, p)}})
	}
	for wait := 100 * time.Millisecond; w.hung == nil; wait *= 2 { // a process that does not run for so long does not look
		w.until = time.Now().Add(wait)
		look("dead/x") // returns
	}
	w.blind = 0
	look("there")
	if len(w.list) != 1 || !strings.Contains(w.list[0].Why, "did not answer") || w.hung == nil || w.blind != 1 {
		t.Errorf("%v, %d not looked at", w.list, w.blind)
	}
	unix.Close(server) // the kernel answers for it now: ENOTCONN
	for w.until = time.Now().Add(time.Hour); w.hung != nil; {
		look("there")
	}
	if look("absent"); len(w.list) != 2 || w.list[1].Path != filepath.Join(dir, "there") {
		t.Errorf("afterwards: %v", w.list)
	}
}
