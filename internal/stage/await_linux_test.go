package stage

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestASandboxIsWaitedForAsLongAsItsStageLives and from then on for a bounded time: a
// process that was killed and does not end is told of.
func TestASandboxIsWaitedForAsLongAsItsStageLives(t *testing.T) {
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	pidfd := func() *os.File {
		fd, err := unix.PidfdOpen(sleeper.Process.Pid, unix.PIDFD_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "pidfd")
		t.Cleanup(func() { f.Close() })
		return f
	}
	over := make(chan struct{})
	close(over)
	for _, over := range []chan struct{}{nil, over} {
		c := Control{init: pidfd()}
		if c.AwaitEmpty(over, time.Millisecond); c.Stuck == 0 {
			t.Error("it lives, and is not told of")
		}
	}
	c := Control{init: pidfd(), keeper: pidfd()}
	time.AfterFunc(50*time.Millisecond, func() { sleeper.Process.Kill() }) // long after the limit
	if c.AwaitEmpty(make(chan struct{}), time.Millisecond); c.Stuck != 0 {
		t.Error("its stage has not ended, and it was given up")
	}
	sleeper.Wait()
}
