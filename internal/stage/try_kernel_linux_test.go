package stage

import (
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelACoveredProcIsNamedByTheRemedy: containers cover parts of /proc, and the kernel mounts
// no new one then. Without the cover the same user makes namespaces.
func TestKernelACoveredProcIsNamedByTheRemedy(t *testing.T) {
	kerneltest.Need(t, kerneltest.IsRoot)
	for name, covered := range map[string]bool{"covered": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.HasUserNamespaces)
				runtime.LockOSThread()
				check := func(err error) {
					if err != nil {
						t.Fatal(err)
					}
				}
				check(unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS))
				check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
				if covered {
					check(unix.Mount("none", "/proc/sys", "tmpfs", unix.MS_RDONLY, ""))
				}
				check(unix.Setresgid(65534, 65534, 65534))
				check(unix.Setresuid(65534, 65534, 65534))
				check(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
				f := Try(host.Read())
				if f.Namespaces.Yes() == covered || covered != f.Around.Masked || covered && f.Around.Runtime == "" && !strings.Contains(f.Namespaces.Remedy, "/proc is whole") {
					t.Errorf("%+v", f.Namespaces)
				}
			})
		})
	}
}
