package stage

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// TestAskSession takes the answer to its own request, not a late one to an earlier request.
func TestAskSession(t *testing.T) {
	harness, init, err := SessionSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer harness.Close()
	fd, owed, kind := int(init.Fd()), 0, make([]byte, 4)
	answer := func() {
		if _, err := unix.Read(fd, kind); err != nil {
			t.Error(err)
		}
		if _, err := unix.Write(fd, []byte{0}); err != nil {
			t.Error(err)
		}
	}
	if err := AskSession(harness, wire.RequestPause, &owed, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
	answer()
	if err := AskSession(harness, wire.RequestResume, &owed, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with the answer to another request: %v", err)
	}
	done := make(chan struct{})
	go func() {
		answer()
		answer()
		close(done)
	}()
	if err := AskSession(harness, wire.RequestPause, &owed, 2*time.Minute); err != nil {
		t.Errorf("with both answers: %v", err)
	}
	if <-done; kind[0] != wire.RequestPause {
		t.Errorf("the last request is %d", kind[0])
	}
	init.Close()
	if err := AskSession(harness, wire.RequestResume, &owed, 2*time.Minute); !errors.Is(err, unix.EPIPE) {
		t.Errorf("without init: %v", err)
	}
}

// TestACommandThatIsGoneIsFollowedNoLonger: its socket may stay open for the time of a pause.
func TestACommandThatIsGoneIsFollowedNoLonger(t *testing.T) {
	for _, kinds := range [][]uint32{{wire.MsgStarted, wire.MsgGone}, {wire.MsgStarted, wire.MsgEvidence, wire.MsgToolEnded, wire.MsgGone}} {
		c, err := NewControl()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		other, err := Duplicate(c.Child)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		for _, kind := range kinds {
			m := wire.Message{Kind: kind}
			if _, err := other.Write(bytesOf(&m)); err != nil {
				t.Fatal(err)
			}
		}
		c.Passed()
		if c.Follow(nil, MostEnd, func() {}, func() {}); !c.Started {
			t.Error("the first message was not read")
		}
		c.Discard(nil)
	}
}

// TestACommandThatDoesNotEndIsFollowedForABoundedTime once its stage has ended, and what is left is told of.
func TestACommandThatDoesNotEndIsFollowedForABoundedTime(t *testing.T) {
	c, err := NewControl()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	warden, err := Duplicate(c.Child) // which holds it
	if err != nil {
		t.Fatal(err)
	}
	defer warden.Close()
	r, w, err := os.Pipe() // for its pidfd
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c.init = r
	m := wire.Message{Kind: wire.MsgStarted}
	if _, err := warden.Write(bytesOf(&m)); err != nil {
		t.Fatal(err)
	}
	c.Passed()
	over := make(chan struct{})
	close(over)
	if c.Follow(over, time.Millisecond, func() {}, func() {}); !c.Started || c.ToolEnded || c.Stuck == 0 {
		t.Errorf("started %v, ended %v, stuck %d", c.Started, c.ToolEnded, c.Stuck)
	}
	c.Discard(over)
}
