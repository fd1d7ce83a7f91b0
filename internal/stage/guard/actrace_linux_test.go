package guard

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ownTerminal makes the process the leader of a session with a terminal of its own, and returns that.
func ownTerminal() (int, error) {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, fmt.Errorf("/dev/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	tty, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, fmt.Errorf("the terminal: %w", err)
	}
	if _, err := unix.Setsid(); err != nil {
		return -1, err
	}
	return tty, unix.IoctlSetInt(tty, unix.TIOCSCTTY, 0)
}

// during runs change on a thread of its own, over and over, while each is called n times or fails.
func during(change func(), n int, each func() error) error {
	var stop atomic.Bool
	ended := make(chan bool)
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			change()
		}
		close(ended)
	}()
	var err error
	for i := 0; i < n && err == nil; i++ {
		err = each()
	}
	stop.Store(true)
	<-ended
	return err
}

// swapTerminal opens /dev/tty while descriptor 0 is now the terminal, now the victim.
func swapTerminal(victim string, flags int) error {
	tty, err := ownTerminal()
	if err != nil {
		return err
	}
	path, err := unix.Open(victim, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	opened := 0
	err = during(func() { unix.Dup3(tty, 0, 0); unix.Dup3(path, 0, 0) }, tries/4, func() error {
		fd, err := unix.Open("/dev/tty", flags|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil
		}
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			return fmt.Errorf("UNEXPECTED: opened a file of mode %o", st.Mode)
		}
		opened++
		return nil
	})
	if err == nil && opened == 0 {
		err = errors.New("the terminal was never opened")
	}
	return err
}
