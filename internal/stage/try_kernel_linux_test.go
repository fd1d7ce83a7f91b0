package stage

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelACoveredProcIsNamedByTheRemedy: containers cover parts of /proc, and the kernel mounts
// no new one then: namespaces come without one of pids. Without the cover the same user makes all.
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
				if !f.Namespaces.Yes() || f.SharedPIDs != covered || covered != f.Around.Masked || covered && f.Around.Runtime == "" && !strings.Contains(f.Namespaces.Remedy, "/proc is whole") {
					t.Errorf("%+v, shared pids: %v", f.Namespaces, f.SharedPIDs)
				}
			})
		})
	}
}

// TestKernelAProbeThatIsKilledIsRunAgain: the end of a process of the probe says nothing about the host, so it is asked again. The
// first stages of a trial are killed as soon as they are seen: one, or two.
func TestKernelAProbeThatIsKilledIsRunAgain(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			for i := range kerneltest.Amount(t, 10, 20, 40) {
				done, killed := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(killed)
					killStages(1+i%2, done)
				}()
				f := Try(host.Read())
				close(done)
				<-killed
				if !f.Namespaces.Yes() || !f.Image.Yes() || f.Shortage != nil {
					t.Fatalf("trial %d: %+v, %+v, shortage %v", i, f.Namespaces, f.Image, f.Shortage)
				}
			}
		})
	})
}

// killStages kills the first so many children of this process, unless done is closed before.
func killStages(most int, done chan struct{}) {
	var seen []int
	for len(seen) < most {
		select {
		case <-done:
			return
		default:
		}
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, f := range strings.Fields(string(text)) {
				pid, err := strconv.Atoi(f)
				if err != nil || slices.Contains(seen, pid) || len(seen) == most {
					continue
				}
				seen = append(seen, pid)
				if fd, err := unix.PidfdOpen(pid, 0); err == nil {
					unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
					unix.Close(fd)
				}
			}
		}
	}
}
