package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelASlowListHoldsUpNoCommand: while Processes waits for an answer of /proc, here a pipe in the place of a warden's list of children, a command
// starts and ends. It takes root and a mount namespace, which the child has with these walls.
func TestKernelASlowListHoldsUpNoCommand(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: sharedPIDs.without}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.IsRoot, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
		s, err := attackSandbox(t, attackPolicy(t, "", sharedPIDs), sharedPIDs).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first := s.sh("echo ready; exec sleep 1000")
		out, err := first.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		list, err := s.Processes()
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		warden := 0
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", list[0].Outside))
		_, parent, _ := strings.Cut(string(status), "\nPPid:")
		if fmt.Sscan(parent, &warden); warden == 0 {
			t.Fatalf("%s", status)
		}
		tasks := fmt.Sprintf("/proc/%d/task", warden)
		if err := unix.Mount("none", tasks, "tmpfs", 0, ""); err != nil {
			t.Skip("needs a mount upon a directory of /proc:", err)
		}
		defer unix.Unmount(tasks, unix.MNT_DETACH)
		slow := filepath.Join(tasks, "1", "children")
		if err := os.Mkdir(filepath.Dir(slow), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(slow, 0o600); err != nil {
			t.Fatal(err)
		}
		listed := make(chan error, 1)
		go func() {
			_, err := s.Processes()
			listed <- err
		}()
		answer := -1
		await(t, "a reader of the pipe", func() bool {
			answer, err = unix.Open(slow, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // ENXIO without one
			return err == nil
		})
		ran := make(chan error, 1)
		go func() { ran <- s.sh("true").Run() }()
		select {
		case err := <-ran:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("a command waits for the list")
		}
		select {
		case err := <-listed:
			t.Errorf("the list has not waited: %v", err)
		default:
		}
		unix.Close(answer)
		if err := <-listed; err != nil {
			t.Error(err)
		}
		unix.Unmount(tasks, unix.MNT_DETACH)
		await(t, "the first command alone in the list", func() bool {
			list, err := s.Processes()
			return err == nil && len(list) == 1
		})
	})
}
