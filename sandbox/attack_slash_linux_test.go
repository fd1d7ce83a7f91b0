package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(programs, "slashes", func(args []string) {
	seconds, _ := strconv.Atoi(args[0])
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		for range 100 {
			unix.Chmod("x/", 0o777)
			unix.UtimesNanoAt(unix.AT_FDCWD, "x/", make([]unix.Timespec, 2), 0)
		}
	}
})

// TestKernelAttackANameWithASlash: behind a slash the kernel follows a link whatever the flags say. The supervisor has judged the directory x, and another
// process, as the tool of a second sandbox, has a link to a directory outside in its place when it acts.
func TestKernelAttackANameWithASlash(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, bareWalls, func(t *testing.T, w walls) {
		p, dir := barePolicy(t, w)
		outside := t.TempDir()
		x, l := filepath.Join(dir, "x"), filepath.Join(dir, "l")
		for _, err := range []error{os.Chmod(outside, 0o700), os.Mkdir(x, 0o755), os.Symlink(outside, l)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		c := hostile(t, attackSandbox(t, p, w), "slashes", strconv.Itoa(kerneltest.Amount(t, 1, 2, 4)))
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- c.Wait() }()
		for {
			select {
			case err := <-ended:
				info, statErr := os.Stat(outside)
				if err != nil || statErr != nil {
					t.Fatal(err, statErr)
				}
				if info.Mode().Perm() != 0o700 || info.ModTime().Unix() == 0 {
					t.Errorf("ESCAPE: a directory outside is %v, of %v", info.Mode(), info.ModTime())
				}
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, l, unix.RENAME_EXCHANGE)
			}
		}
	})
}
