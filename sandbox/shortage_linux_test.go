package sandbox

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelASmallFileSizeLimitIsNamed: the limit of the harness's own files is an error that names it, from New or from Start, and says nothing about
// the host; with the limit raised the same program runs commands.
func TestKernelASmallFileSizeLimitIsNamed(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := t.TempDir()
			run := func(size uint64) error {
				var before unix.Rlimit
				if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
					t.Fatal(err)
				}
				if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: before.Max}); err != nil {
					t.Fatal(err)
				}
				defer unix.Setrlimit(unix.RLIMIT_FSIZE, &before)
				s, err := New(Workspace(dir))
				if err != nil {
					return err
				}
				defer s.Close()
				return s.Command("true").Run()
			}
			for _, size := range []uint64{0, 1000, 4096, 12 << 10, 1 << 20, 4096} { // the last one after the host's facts are known
				err := run(size)
				var host *UnsupportedError
				switch {
				case size == 1<<20:
					if err != nil {
						t.Errorf("a limit of %d bytes: %v", size, err)
					}
				case !errors.Is(err, syscall.EFBIG) || errors.As(err, &host) || !strings.Contains(err.Error(), "RLIMIT_FSIZE"):
					t.Errorf("a limit of %d bytes: %v", size, err)
				}
			}
		})
	})
}
