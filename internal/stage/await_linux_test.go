package stage

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
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

// TestWhatHasArrivedIsReadLate: on a busy machine the deadline of hurry can pass before what the stage has said is looked at.
func TestWhatHasArrivedIsReadLate(t *testing.T) {
	c, err := NewControl()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	init, err := unix.Dup(int(c.Child.Fd())) // which lives on
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(init)
	m := wire.Message{Kind: wire.MsgStarted}
	if _, err := unix.Write(init, bytesOf(&m)); err != nil {
		t.Fatal(err)
	}
	hurry := c.Passed()
	hurry()
	time.Sleep(1100 * time.Millisecond)
	if err := c.AwaitStart(); err != nil || !c.Started {
		t.Errorf("the message was not read: %v", err)
	}
	if err := c.next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with no message: %v", err)
	}
}

// TestEvidenceIsAwaitedWithWhoInitIs: init's messages can be faster than the stage's, which says who init is.
func TestEvidenceIsAwaitedWithWhoInitIs(t *testing.T) {
	c, err := NewControl()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(kind uint32, value int64) {
		m := wire.Message{Kind: kind, Value: value}
		if _, err := c.Child.Write(bytesOf(&m)); err != nil {
			t.Fatal(err)
		}
	}
	say(wire.MsgStarted, 0)
	say(wire.MsgEvidence, 0)
	say(wire.MsgInit, 7)
	c.Passed()
	if err := c.AwaitStart(); err != nil {
		t.Fatal(err)
	}
	if c.AwaitEvidence(); c.Evidence == nil || c.InitPID != 7 {
		t.Errorf("evidence %v, init %d", c.Evidence, c.InitPID)
	}
}

// A stage that dies before it says so is waited for no longer.
func TestEvidenceWithoutInitEndsWithTheStage(t *testing.T) {
	c, err := NewControl()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, kind := range []uint32{wire.MsgStarted, wire.MsgEvidence} {
		m := wire.Message{Kind: kind}
		if _, err := c.Child.Write(bytesOf(&m)); err != nil {
			t.Fatal(err)
		}
	}
	c.Passed()
	c.AwaitStart()
	if c.AwaitEvidence(); c.Evidence == nil || c.InitPID != 0 {
		t.Errorf("evidence %v, init %d", c.Evidence, c.InitPID)
	}
}

// TestASocketThatThePollerRefusesIsNamed: what the user's processes have used up is no stage without a status. A regular file is refused by epoll, too.
func TestASocketThatThePollerRefusesIsNamed(t *testing.T) {
	for refused := range 2 {
		c, err := NewControl()
		if err != nil {
			t.Fatal(err)
		}
		if refused == 1 {
			f, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Dup3(int(f.Fd()), c.own, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		c.Passed()
		if named := c.Failed != nil && strings.Contains(c.Failed.Found, "max_user_watches"); named != (refused == 1) {
			t.Errorf("refused: %d, failure: %+v", refused, c.Failed)
		}
		c.Close()
	}
}
