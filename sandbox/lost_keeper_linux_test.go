package sandbox

import (
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// behind has a process run on one processor with this thread, and only while this thread sleeps: what this thread does when something has happened comes before what
// the process does then. It returns how that ends for the thread.
func behind(t *testing.T, pid int) (again func()) {
	t.Helper()
	runtime.LockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	for _, p := range []int{0, pid} {
		if err := unix.SchedSetaffinity(p, &one); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		t.Fatal(err)
	}
	return func() {
		unix.SchedSetaffinity(0, &all)
		runtime.UnlockOSThread()
	}
}

// killWhenEnded kills a process, waits for the end of another, and at once does what follows. With 0 it kills none.
func killWhenEnded(t *testing.T, kill, ends int, then func()) {
	t.Helper()
	fd, err := unix.PidfdOpen(ends, 0)
	if err == unix.ESRCH { // it has ended, and kill, which has reaped it, may have
		if kill != 0 {
			unix.Kill(kill, unix.SIGKILL)
		}
		then()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if kill != 0 {
		if err := unix.Kill(kill, unix.SIGKILL); err != nil && err != unix.ESRCH {
			t.Fatal(err)
		}
	}
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(p, 60_000); err != unix.EINTR {
			break
		}
	}
	then()
	unix.Close(fd)
	if p[0].Revents == 0 {
		t.Error("init has not ended")
	}
}

// TestKernelNothingOutlivesTheStageAndTheKeeper, when the one is killed right after the other, as soon as init has ended: that is the last of the three.
func TestKernelNothingOutlivesTheStageAndTheKeeper(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			for range kerneltest.Amount(t, 2, 3, 10) {
				for _, stageFirst := range []bool{false, true} {
					c, fds, ready := startLitter(t, t.Context(), workspaceHere(t), "sleep 1000")
					if !ready {
						t.Fatalf("the tool was not ready: %v", c.Wait())
					}
					first, second := theChild(t, c.Process.Pid), c.Process.Pid
					init := theChild(t, first)
					if stageFirst {
						first, second = second, first
					}
					again := behind(t, second)
					killWhenEnded(t, first, init, func() { unix.Kill(second, unix.SIGKILL) })
					again()
					if err := c.Wait(); err == nil {
						t.Error("the tool ran to its end")
					}
					dead(t, fds, 10_000)
				}
			}
		})
	})
}

// TestKernelNothingOutlivesADeadlineWithoutStageAndKeeper, which are killed as soon as init has ended: that is the last of the three. The harness's death has the stage do the same.
func TestKernelNothingOutlivesADeadlineWithoutStageAndKeeper(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			p := workspaceHere(t)
			p.Limits.WallClock = time.Second
			for done := 0; done < kerneltest.Amount(t, 2, 5, 5); {
				c, fds, ready := startLitter(t, t.Context(), p, "sleep 1000")
				if !ready { // on a slow machine
					c.Wait()
					p.Limits.WallClock *= 2
					continue
				}
				stage := c.Process.Pid
				keeper := theChild(t, stage)
				again := behind(t, stage)
				killWhenEnded(t, 0, theChild(t, keeper), func() {
					unix.Kill(keeper, unix.SIGKILL)
					unix.Kill(stage, unix.SIGKILL)
				})
				again()
				c.Wait()
				dead(t, fds, 10_000)
				done++
			}
		})
	})
}

// TestKernelNothingOutlivesASessionThatIsClosedWithoutAKeeper: init has ended, and the stage is about to kill what it has left.
func TestKernelNothingOutlivesASessionThatIsClosedWithoutAKeeper(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, allSets[3:4], func(t *testing.T, w walls) {
		of := attackSandbox(t, attackPolicy(t, "", w), w)
		for range kerneltest.Amount(t, 2, 3, 10) {
			for _, initToo := range []bool{false, true} {
				s, err := of.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := s.sh("setsid sleep 999 >/dev/null 2>&1 & exit 0").Run(); err != nil {
					t.Fatal(err)
				}
				list := awaitProcesses(t, s, 1, "sleep")
				if len(list) != 1 {
					t.Fatal(list)
				}
				init := parentOf(t, parentOf(t, list[0].Outside))
				keeper := parentOf(t, init)
				stage := parentOf(t, keeper)
				fds := outside(t, stage)
				again := behind(t, stage)
				if initToo {
					unix.Kill(keeper, unix.SIGSTOP)
					unix.Kill(init, unix.SIGKILL)
				}
				killWhenEnded(t, keeper, init, func() { s.Close() })
				again()
				dead(t, fds, 10_000)
			}
		}
	})
}
