package gitattack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// racerName is the argv[0] of the hostile program that waits for another git's lock files.
const racerName = "holdfast-gitattack-racer"

func init() { kerneltest.Programs[racerName] = racerMain }

// A race says what the racer does to which files.
type race struct {
	How    string
	Locks  []string          // below the workspace
	Config []byte            // becomes the content of what is called config.lock,
	Other  map[string][]byte // and of these
	Spin   bool              // without inotify: the name is tried for ever
}

// text is the content for a lock.
func (c *race) text(lock string) []byte {
	if t := c.Other[lock]; t != nil {
		return t
	}
	return c.Config
}

// racerMain races until its input ends. It says what it has got hold of.
func racerMain() {
	var c race
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		fmt.Println("no race:", err)
		os.Exit(1)
	}
	w := watch(c.Locks)
	fmt.Println("ready")
	ended := make(chan bool)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		close(ended)
	}()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return
		default:
		}
		for _, lock := range c.Locks {
			if (c.Spin || w.seen(lock)) && c.take(lock, n) {
				fmt.Println(c.How, lock)
			}
		}
	}
}

// take does to one lock what the race is about, and reports whether it was done.
func (c *race) take(lock string, n int) bool {
	own := fmt.Sprintf("own%d", n)
	switch c.How {
	case "open and write later", "open and write at once":
		fd, err := unix.Open(lock, unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		if c.How == "open and write later" {
			gone(lock)
		}
		_, err = unix.Write(fd, c.text(lock))
		unix.Close(fd)
		return err == nil
	case "read and write":
		fd, err := unix.Open(lock, unix.O_RDWR|unix.O_TRUNC|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		gone(lock)
		_ = unix.Ftruncate(fd, 0)
		_, err = unix.Pwrite(fd, c.text(lock), 0)
		unix.Close(fd)
		return err == nil
	case "link":
		if unix.Link(lock, own) != nil {
			return false
		}
		gone(lock)
		return os.WriteFile(own, c.text(lock), 0o644) == nil
	case "replace":
		return os.WriteFile(own, c.text(lock), 0o644) == nil && unix.Rename(own, lock) == nil
	case "exchange":
		return os.WriteFile(own, c.text(lock), 0o644) == nil && unix.Renameat2(unix.AT_FDCWD, own, unix.AT_FDCWD, lock, unix.RENAME_EXCHANGE) == nil
	case "remove and make":
		if unix.Unlink(lock) != nil {
			return false
		}
		fd, err := unix.Open(lock, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return false
		}
		_, err = unix.Write(fd, c.text(lock))
		unix.Close(fd)
		return err == nil
	case "take away and put back":
		if unix.Rename(lock, own) != nil {
			return false
		}
		return os.WriteFile(own, c.text(lock), 0o644) == nil && unix.Rename(own, lock) == nil
	case "truncate":
		return unix.Truncate(lock, 0) == nil
	}
	return false
}

// gone waits until a lock has its name no more, or for some milliseconds.
func gone(lock string) {
	var st unix.Stat_t
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		if unix.Lstat(lock, &st) != nil {
			return
		}
	}
}

// A watcher is told of new names by inotify(7).
type watcher struct {
	fd    int
	dirs  map[int32]string
	fresh []string
}

func watch(locks []string) *watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		fmt.Println("inotify:", err)
		os.Exit(1)
	}
	w := &watcher{fd: fd, dirs: map[int32]string{}}
	for _, l := range locks {
		if wd, err := unix.InotifyAddWatch(fd, filepath.Dir(l), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MODIFY); err == nil {
			w.dirs[int32(wd)] = filepath.Dir(l)
		}
	}
	return w
}

// seen reports whether a lock has appeared since it was last asked for.
func (w *watcher) seen(lock string) bool {
	var b [8192]byte
	n, _ := unix.Read(w.fd, b[:])
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[at]))
		name := unix.ByteSliceToString(b[at+unix.SizeofInotifyEvent : at+unix.SizeofInotifyEvent+int(e.Len)])
		w.fresh = append(w.fresh, filepath.Join(w.dirs[e.Wd], name))
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
	i := slices.Index(w.fresh, lock)
	if i < 0 {
		if len(w.fresh) > 64 {
			w.fresh = nil
		}
		return false
	}
	w.fresh = slices.Delete(w.fresh, i, i+1)
	return true
}
