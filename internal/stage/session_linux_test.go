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
		if c.Follow(nil, func() {}, func() {}); !c.Started {
			t.Error("the first message was not read")
		}
		c.Discard()
	}
}
