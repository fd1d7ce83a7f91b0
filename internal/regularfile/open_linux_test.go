package regularfile

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNothingElseIsOpened: not even for a moment, which a watch would tell.
func TestNothingElseIsOpened(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"fifo"}
	if err := unix.Mknod(dir+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err == nil { // root
		names = append(names, "device")
	}
	for _, name := range names {
		if err := os.Symlink(name, dir+"/to-"+name); err != nil {
			t.Fatal(err)
		}
		watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(watch)
		if _, err := unix.InotifyAddWatch(watch, dir+"/"+name, unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{name, "to-" + name} {
			if f, err := Open(dir + "/" + p); !errors.Is(err, ErrNotRegular) {
				f.Close()
				t.Errorf("%s: %v", p, err)
			}
		}
		if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
			t.Errorf("%s was opened: %d %v", name, n, err)
		}
	}
	for _, p := range []string{"/proc/self/status", "/proc/kmsg", "/sys/kernel/uevent_seqnum", "/dev/null"} {
		if f, err := Open(p); err == nil || !errors.Is(err, ErrNotRegular) && !errors.Is(err, unix.ENOENT) {
			f.Close()
			t.Errorf("%s: %v", p, err)
		}
	}
	if d, err := OpenDir(dir + "/fifo"); err != unix.ENOTDIR && !errors.Is(err, unix.ENOTDIR) {
		d.Close()
		t.Error("a FIFO as a directory:", err)
	}
}

// TestAnExchangedFileIsNotWaitedFor: a file that becomes a FIFO between two looks.
func TestAnExchangedFileIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mkfifo(dir+"/a", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/b", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/b", unix.RENAME_EXCHANGE)
			}
		}
	}()
	opened := make(chan int)
	go func() {
		n := 0
		for range 3000 {
			text, err := Read(dir+"/b", 1)
			switch {
			case err == nil && string(text) == "x":
				n++
			case !errors.Is(err, ErrNotRegular):
				t.Errorf("%q %v", text, err)
			}
		}
		opened <- n
	}()
	select {
	case n := <-opened:
		if n == 0 {
			t.Error("the file was never read")
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	close(stop)
	<-done
}
