package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestKernelWaitOutputFindsWhatACommandPrints, whatever its writers are, and takes nothing from them.
func TestKernelWaitOutputFindsWhatACommandPrints(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		const script = "echo begin; echo ready at 8080; read line; echo end of $line"
		ready := regexp.MustCompile(`ready at \d+\n`)
		for _, own := range []bool{false, true} {
			c := s.sh(script)
			var out bytes.Buffer
			if own {
				c.Stdout, c.Stderr = &out, &out
			}
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.WaitOutput(t.Context(), ready); !errors.Is(err, os.ErrInvalid) {
				t.Errorf("before Start: %v", err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if m, err := c.WaitOutput(t.Context(), ready); m != "ready at 8080\n" || err != nil {
				t.Errorf("%q, %v", m, err)
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := c.WaitOutput(over, regexp.MustCompile("end")); !errors.Is(err, context.Canceled) {
				t.Errorf("what is not printed yet: %v", err)
			}
			io.WriteString(in, "input\n")
			if m, err := c.WaitOutput(t.Context(), regexp.MustCompile("end of input\n")); m == "" || err != nil {
				t.Errorf("%q, %v", m, err)
			}
			if _, err := c.WaitOutput(t.Context(), regexp.MustCompile("never")); !errors.Is(err, io.EOF) {
				t.Errorf("what is never printed: %v", err)
			}
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
			const all = "begin\nready at 8080\nend of input\n"
			if own && out.String() != all {
				t.Errorf("the command's own writer has %q", out.String())
			}
			if o, err := s.Output(c.ID(), 0); err != nil || string(o.Data) != all || o.Next != int64(len(all)) || o.Dropped != 0 || !o.Ended {
				t.Errorf("%+v, %v", o, err)
			}
			if o, err := s.Output(c.ID(), 6); err != nil || string(o.Data) != all[6:] {
				t.Errorf("from an offset: %+v, %v", o, err)
			}
		}
		c := s.sh("echo out; echo err >&2")
		if out, err := c.CombinedOutput(); string(out) != "out\nerr\n" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
		if o, err := s.Output(c.ID(), 0); err != nil || string(o.Data) != "out\nerr\n" {
			t.Errorf("%+v, %v", o, err)
		}
		if out, err := s.sh("echo out; echo why >&2; exit 3").Output(); string(out) != "out\n" || err == nil || err.Error() != "exit status 3" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// TestKernelOutputHasWhatWasPrintedBefore: all that a command has printed is there when it has ended, whatever it has left.
func TestKernelOutputHasWhatWasPrintedBefore(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		for range 50 {
			c := s.sh("printf %60000s; echo last; exec sleep 1000 &")
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
			if o, err := s.Output(c.ID(), 60_000); err != nil || string(o.Data) != "last\n" || o.Next != 60_005 || o.Ended {
				t.Fatalf("%+v, %v", o, err)
			}
			c.Cancel()
		}
	})
}

// TestKernelWhatACommandLeavesGoesOnPrinting after Wait: it is read until the last process has ended.
func TestKernelWhatACommandLeavesGoesOnPrinting(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		outputOf(t, s.sh("mkfifo ${TMPDIR:-/tmp}/fifo"))
		c := s.sh("(read x <${TMPDIR:-/tmp}/fifo; echo left says $x) & echo tool")
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if o, err := s.Output(c.ID(), 0); err != nil || o.Ended {
			t.Errorf("while something is left: %+v, %v", o, err)
		}
		outputOf(t, s.sh("echo hello >${TMPDIR:-/tmp}/fifo"))
		if m, err := c.WaitOutput(t.Context(), regexp.MustCompile("left says hello\n")); err != nil {
			t.Errorf("%q, %v", m, err)
		}
		if _, err := c.WaitOutput(t.Context(), regexp.MustCompile("never")); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

// TestKernelOutputIsBounded: a command that prints without end costs no more memory, and waits for no reader.
func TestKernelOutputIsBounded(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		c := s.sh("head -c 3000000 /dev/zero; echo end")
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if m, err := c.WaitOutput(t.Context(), regexp.MustCompile("end\n$")); m != "end\n" || err != nil {
			t.Errorf("%q, %v", m, err)
		}
		const all = 3000000 + 4
		if o, err := s.Output(c.ID(), 100); err != nil || o.Next != all || o.Dropped != all-100-int64(len(o.Data)) || len(o.Data) > 1<<20 || !strings.HasSuffix(string(o.Data), "end\n") {
			t.Errorf("%d bytes, next %d, %d dropped, %v", len(o.Data), o.Next, o.Dropped, err)
		}
		first := c.ID()
		for range 20 {
			outputOf(t, s.sh("echo more"))
		}
		if _, err := s.Output(s.last()+1, 0); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an id that there is not: %v", err)
		}
		if _, err := s.Output(first, 0); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a command that has ended long ago: %v", err)
		}
		file := s.sh("echo to a file")
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		file.Stdout, file.Stderr = null, null
		if err := file.Start(); err != nil {
			t.Fatal(err)
		}
		not := (*PolicyError)(nil)
		if _, err := file.WaitOutput(t.Context(), regexp.MustCompile("file")); !errors.As(err, &not) || not.Remedy == "" {
			t.Errorf("a command whose output goes to a file: %v", err)
		}
		file.Wait()
		waits := s.sh("exec sleep 1000")
		if err := waits.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := waits.WaitOutput(t.Context(), regexp.MustCompile("never"))
			ended <- err
		}()
		s.Close()
		over := (*policy.SessionError)(nil)
		if err := <-ended; !errors.As(err, &over) {
			t.Errorf("the session's end: %v", err)
		}
		if _, err := s.Output(waits.ID(), 0); !errors.As(err, &over) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// last is the id of a command that the session has just run.
func (s *Session) last() int {
	c := s.sh("true")
	c.Run()
	return c.ID()
}
