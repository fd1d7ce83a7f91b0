package runner

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestAnExchangedProgramIsNotWaitedFor: what is a FIFO by the time that it is opened would have Start wait for a writer.
func TestAnExchangedProgramIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/fifo", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/tool", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, dir+"/tool", unix.AT_FDCWD, dir+"/fifo", unix.RENAME_EXCHANGE)
			}
		}
	}()
	s, done := &Sandbox{Policy: policy.Policy{Open: []policy.Bound{policy.BoundFiles}}}, make(chan bool)
	go func() {
		defer close(done)
		for range 5000 {
			s.judgeExecutable(&exec.Cmd{}, dir, dir+"/tool", maxInterpreters)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	close(stop)
	<-stopped
}
