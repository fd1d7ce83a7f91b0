package sandbox

import (
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelStartWithoutDescriptors: a harness that has no descriptors left gets an error
// from Start that says so, whichever of them is the one that is missing; nothing is left
// of the attempt, and with enough of them the same sandbox works.
func TestKernelStartWithoutDescriptors(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 200}); err != nil {
				t.Fatal(err)
			}
			s := attackSandbox(t, attackPolicy(t, "", allSets[0]), allSets[0])
			run := func() error {
				c := s.Command("true")
				c.Dir = "/"
				return c.Run()
			}
			if err := run(); err != nil { // what is kept for the life of the process
				t.Fatal(err)
			}
			refused, worked := 0, 0
			for spare := range 30 {
				taken := takeAllBut(spare)
				err := run()
				again := takeAllBut(0)
				for _, fd := range slices.Concat(taken, again) {
					unix.Close(fd)
				}
				if len(again) != spare {
					t.Errorf("of %d spare descriptors %d are left: %v", spare, len(again), err)
				}
				switch {
				case err == nil:
					worked++
				case errors.Is(err, unix.EMFILE):
					refused++
				default:
					t.Errorf("with %d spare descriptors: %v", spare, err)
				}
				if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
					t.Errorf("with %d spare descriptors: a child is left: %d, %v", spare, pid, err)
				}
			}
			if refused == 0 || worked == 0 {
				t.Errorf("%d times refused, %d times not", refused, worked)
			}
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	})
}

// takeAllBut uses up the descriptors that are free, but for some.
func takeAllBut(spare int) (taken []int) {
	for {
		fd, err := unix.Dup(0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	for ; spare > 0 && len(taken) > 0; spare-- {
		unix.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	return taken
}
