package output

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestALogKeepsTheEnd of what was printed, and says how much it has dropped.
func TestALogKeepsTheEnd(t *testing.T) {
	for _, size := range []int{0, 1, kept - 1, kept, kept + 1, 2*kept + 1} {
		for _, chunk := range []int{10_000, kept, 3 * kept} {
			l := New()
			var all bytes.Buffer
			for i := 0; all.Len() < size; i++ {
				p := bytes.Repeat([]byte{byte('a' + i%26)}, min(chunk, size-all.Len()))
				all.Write(p)
				l.add(p)
			}
			l.Started()
			o := l.Read(0)
			if first := max(0, size-kept); o.Next != int64(size) || o.Dropped != int64(first) || !o.Ended || !bytes.Equal(o.Data, all.Bytes()[first:]) {
				t.Errorf("%d bytes by %d: %d, next %d, %d dropped", size, chunk, len(o.Data), o.Next, o.Dropped)
			}
			if size == 0 {
				continue
			}
			if o := l.Read(int64(size) - 1); o.Dropped != 0 || !bytes.Equal(o.Data, all.Bytes()[size-1:]) {
				t.Errorf("the last of %d: %q", size, o.Data)
			}
			for _, beyond := range []int64{int64(size), int64(size) + 1, 1 << 60} {
				if o := l.Read(beyond); len(o.Data) != 0 || o.Next != int64(size) || o.Dropped != 0 {
					t.Errorf("from %d of %d: %+v", beyond, size, o)
				}
			}
			if o := l.Read(-1); o.Next != int64(size) {
				t.Errorf("from -1: %+v", o)
			}
		}
	}
}

// TestAMatchIsFound wherever writes begin and end.
func TestAMatchIsFound(t *testing.T) {
	pattern := regexp.MustCompile(`(?m)^listening on (\d+)$\n`)
	for _, before := range []int{0, 1, 100, window, window + 1, 3 * window, 20 * window} {
		text := strings.Repeat("not listening on 1 yet\n", before/23+1) + "listening on 8080\n" + strings.Repeat("x", 100)
		for _, chunk := range []int{1, 7, 1000, 64 << 10} {
			if chunk < 1000 && before > 100 {
				continue // the search of each write costs
			}
			l := New()
			done := make(chan string, 1)
			go func() {
				m, err := l.Wait(t.Context(), pattern)
				if err != nil {
					t.Error(err)
				}
				done <- m
			}()
			for b := []byte(text); len(b) > 0; {
				n := min(chunk, len(b))
				l.add(b[:n])
				b = b[n:]
			}
			if m := <-done; m != "listening on 8080\n" {
				t.Errorf("after %d by %d: %q", before, chunk, m)
			}
			if m, err := l.Wait(t.Context(), pattern); m != "listening on 8080\n" || err != nil {
				t.Errorf("once more: %q, %v", m, err)
			}
		}
	}
}

// TestWaitEnds with its context, and with the output.
func TestWaitEnds(t *testing.T) {
	l := New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Wait(ctx, regexp.MustCompile("x")); !errors.Is(err, context.Canceled) || len(l.waiters) != 0 {
		t.Errorf("%v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := l.Wait(t.Context(), regexp.MustCompile("x"))
		done <- err
	}()
	l.Abandon()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

// TestAnExecCmdsOutputIsKept, its own writers get all of it, and its end is seen: io.Copy calls ReadFrom.
func TestAnExecCmdsOutputIsKept(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	for _, own := range []bool{false, true} {
		l := New()
		c := exec.Command(sh, "-c", "echo out; echo err >&2")
		var out, errs strings.Builder
		if own {
			c.Stdout, c.Stderr = l.Tee(&out), l.Tee(&errs)
		} else {
			f, err := l.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			c.Stdout, c.Stderr = f, f
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		l.Started()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
		<-l.ended
		if o := l.Read(0); len(o.Data) != len("out\nerr\n") || !o.Ended || !bytes.Contains(o.Data, []byte("out\n")) {
			t.Errorf("%+v", o)
		}
		if own && (out.String() != "out\n" || errs.String() != "err\n") {
			t.Errorf("its own writers got %q and %q", out.String(), errs.String())
		}
	}
}

// TestAWriterThatFails fails for the command, as it does without a Log.
func TestAWriterThatFails(t *testing.T) {
	l := New()
	w := l.Tee(failing{})
	if _, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("text")}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
	l.Started()
	if o := l.Read(0); string(o.Data) != "text" || !o.Ended {
		t.Errorf("%+v", o)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
