package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// inSessionOf is inSession with every mechanism alone, under a policy that change has changed.
func inSessionOf(t *testing.T, change func(p *Policy), body func(t *testing.T, s *Session)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		change(&p)
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s)
	})
}

// TestKernelAContextEndsWhatACommandOfASessionHasLeft while Wait reads the output of that, and at no other time.
func TestKernelAContextEndsWhatACommandOfASessionHasLeft(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		if err := s.sh("sleep 998 & echo").Run(); err != nil { // its output is not read, so Run does not wait for the sleep
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		c := s.CommandContext(ctx, "/bin/sh", "-c", "sleep 999 & setsid sleep 999 & echo started")
		c.Dir = "/"
		if out, err := c.CombinedOutput(); string(out) != "started\n" || err != context.DeadlineExceeded || c.ProcessState.ExitCode() != 0 {
			t.Errorf("%q, %v, %v", out, err, c.ProcessState)
		}
		c = s.CommandContext(ctx, "/bin/sh", "-c", "true")
		if err := c.Run(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a command whose context has ended: %v", err)
		}

		ctx, cancel = context.WithCancel(t.Context())
		c = s.CommandContext(ctx, "/bin/sh", "-c", "sleep 999 >/dev/null 2>&1 & exit 3")
		c.Dir = "/"
		if out, err := c.Output(); len(out) > 0 || c.ProcessState.ExitCode() != 3 {
			t.Errorf("%q, %v", out, err)
		}
		cancel() // as by defer, when Wait has returned
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		c = s.CommandContext(ctx, "/bin/sh", "-c", "sleep 0.5 & echo started")
		c.Dir, c.Cancel = "/", nil
		if out, err := c.Output(); string(out) != "started\n" || err != nil {
			t.Errorf("with a nil Cancel: %q, %v", out, err)
		}
		list, err := s.Processes()
		lives := map[string]int{}
		for _, p := range list {
			lives[strings.Join(p.Args, " ")]++
		}
		if lives["sleep 998"] != 1 || lives["sleep 999"] != 1 || err != nil {
			t.Errorf("what lives on: %v, %v", lives, err)
		}
	})
}

// TestKernelACancelThatLetsTheToolEndKeepsItsStatus: the context has ended before the tool exits with 0, and nothing is left that it could end.
func TestKernelACancelThatLetsTheToolEndKeepsItsStatus(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		for round := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := s.CommandContext(ctx, "/bin/sh", "-c", "trap 'exit 0' TERM; echo; while :; do sleep 0.01; done")
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			c.Dir, c.WaitDelay = "/", time.Minute
			c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
			want := context.Canceled
			if round%2 > 0 {
				want, c.Cancel = nil, func() error { c.Process.Signal(syscall.SIGTERM); return os.ErrProcessDone }
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			out.Read(make([]byte, 1))
			cancel()
			if err := c.Wait(); err != want || !c.ProcessState.Success() {
				t.Errorf("round %d: %v, %v; want %v", round, err, c.ProcessState, want)
			}
		}
	})
}

// TestKernelADeadlineEndsWhatACommandOfASessionHasLeft as a context does, with the error of a deadline.
func TestKernelADeadlineEndsWhatACommandOfASessionHasLeft(t *testing.T) {
	inSessionOf(t, func(p *Policy) { p.Limits.WallClock = time.Second }, func(t *testing.T, s *Session) {
		c := s.sh("sleep 999 & echo started")
		if out, err := c.Output(); string(out) != "started\n" || !errors.Is(err, ErrDeadline) {
			t.Errorf("%q, %v", out, err)
		}
		c = s.sh("sleep 999 & echo started")
		if out, err := c.CombinedOutput(); string(out) != "started\n" || !errors.Is(err, ErrDeadline) {
			t.Errorf("%q, %v", out, err)
		}
		if list, err := s.Processes(); len(list) != 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// TestKernelTheDeadlineOfOpensContext is one, and its cancellation a Close.
func TestKernelTheDeadlineOfOpensContext(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		sb := attackSandbox(t, attackPolicy(t, "", w), w)
		for _, end := range []string{"deadline", "cancel"} {
			ctx, cancel := context.WithCancel(t.Context())
			if end == "deadline" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			defer cancel()
			s, err := sb.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			c := s.sh("sleep 999")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if end == "cancel" {
				cancel()
			}
			running, next := c.Wait(), s.sh("true").Run()
			var ended *policy.SessionError
			for what, err := range map[string]error{"the command": running, "the next": next, "WaitPort": s.WaitPort(t.Context(), 1)} {
				if !errors.As(err, &ended) || errors.Is(err, ErrDeadline) != (end == "deadline") || errors.Is(err, os.ErrClosed) != (end == "cancel") {
					t.Errorf("%s, %s: %v", end, what, err)
				}
			}
		}
	})
}

// TestKernelFilesOfAClosedSession say that it is closed, at the first call too.
func TestKernelFilesOfAClosedSession(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		if _, err := s.Files().Stat("/"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		for range 2 {
			if _, err := s.Files().Stat("/"); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// TestKernelASessionIsFull of commands that have left something: the error says so.
func TestKernelASessionIsFull(t *testing.T) {
	kerneltest.Long(t)
	inSessionOf(t, func(*Policy) {}, func(t *testing.T, s *Session) {
		var full *policy.SessionError
		var err error
		started := 0
		for ; err == nil && started < 1000; started++ {
			err = s.sh("sleep 999 & exit 0").Run()
		}
		if !errors.As(err, &full) || !errors.Is(err, syscall.EAGAIN) || !strings.Contains(err.Error(), "256 commands") || started != 257 {
			t.Errorf("command %d: %v", started, err)
		}
	})
}
