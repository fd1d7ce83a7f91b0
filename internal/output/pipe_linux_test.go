package output

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestReadHasWhatWasWrittenBefore the call, in order.
func TestReadHasWhatWasWrittenBefore(t *testing.T) {
	l := New()
	f, err := l.Pipe()
	if err != nil {
		t.Skip(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(fd), "the command's")
	defer w.Close()
	l.Started()
	want := ""
	for n := range 1000 {
		text := fmt.Sprint(n, strings.Repeat(" ", n%5000), "\n")
		if want += text; len(want) > kept {
			break
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if o := l.Read(0); string(o.Data) != want {
			t.Fatalf("after %d: %d bytes, not %d", n, len(o.Data), len(want))
		}
	}
	w.Close()
	<-l.ended
	l.Close()
	if o := l.Read(0); !o.Ended {
		t.Error("it has not ended")
	}
}

// TestCloseEndsWhatIsRead while a process writes without end, and others read.
func TestCloseEndsWhatIsRead(t *testing.T) {
	for range 50 {
		l := New()
		f, err := l.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		w := os.NewFile(uintptr(fd), "the command's")
		l.Started()
		wrote := make(chan bool)
		go func() {
			defer close(wrote)
			for text := make([]byte, 64<<10); ; {
				if _, err := w.Write(text); err != nil {
					return // EPIPE
				}
			}
		}()
		for l.Read(0).Next < 256<<10 {
		}
		l.Close()
		<-l.ended
		<-wrote
		w.Close()
	}
}
