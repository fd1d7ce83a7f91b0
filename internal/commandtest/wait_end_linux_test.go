package commandtest

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// TestKernelWaitIsTheLast: when Wait has returned, by whatever method, no descriptor of
// the run is open, and its goroutine has nothing left to do.
func TestKernelWaitIsTheLast(t *testing.T) {
	kerneltest.Long(t)
	inSandbox(t, func(t *testing.T, s *sandbox.Sandbox, dir string) {
		for name, run := range map[string]func() error{
			"Run": func() error { c := s.Command("/bin/true"); c.Dir = dir; return c.Run() },
			"the embedded Run": func() error {
				c := s.Command("/bin/true")
				c.Dir = dir
				return c.Cmd.Run()
			},
			"a wrapped Run": func() error {
				c := exec.Command("/bin/true")
				c.Dir = dir
				if err := s.Wrap(c); err != nil {
					return err
				}
				return c.Run()
			},
		} {
			before := takeInventory(t)
			busy := 0
			for range 30 {
				if err := run(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				all := make([]byte, 1<<20)
				if all = all[:runtime.Stack(all, true)]; bytes.Contains(all, []byte("stage.(*Control)")) {
					busy++
				}
			}
			if busy > 0 {
				t.Errorf("%s: after %d of 30 the control socket or the mounts were still being closed", name, busy)
			}
			if left := leftOver(t, before); left != "" {
				t.Errorf("%s: left open: %s", name, left)
			}
		}
	})
}

// TestKernelMountsEndBeforeWait: when Wait or Close has returned, what the sandbox has shown of a file system is unmounted, so that the
// file system can end.
func TestKernelMountsEndBeforeWait(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasSeccompFilter, kerneltest.LandlockABI(1))
		runtime.LockOSThread() // the thread ends with the test, and with it its mount namespace
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
			t.Fatal(err)
		}
		at := openDir(t)
		for name, policy := range map[string]func() sandbox.Policy{
			"private directories": func() sandbox.Policy { return toolPolicy(at) },
			"the default":         func() sandbox.Policy { return sandbox.Workspace(at) },
		} {
			for range 10 {
				if err := unix.Mount("test", at, "tmpfs", 0, ""); err != nil {
					t.Fatal(err)
				}
				watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
				if err == nil {
					_, err = unix.InotifyAddWatch(watch, at, unix.IN_DELETE_SELF)
				}
				if err != nil {
					t.Fatal(err)
				}
				s, err := sandbox.New(policy())
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				c := s.Command("/bin/true")
				c.Dir = "/"
				if err := c.Run(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				s.Close()
				if err := unix.Unmount(at, 0); err != nil {
					t.Fatal(err)
				}
				// umount(2) returns when the file system has ended, if no other mount of it is left; inotify(7) tells of it.
				if _, err := unix.Read(watch, make([]byte, 512)); err != nil {
					t.Errorf("%s: what the tool had is still mounted: %v", name, err)
				}
				unix.Close(watch)
			}
		}
	})
}
