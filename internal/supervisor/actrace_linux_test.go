package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// swapCwd makes names by relative paths while the working directory, which the threads share, is now a plain
// directory, now one with protected names.
func swapCwd(protected, name string) error {
	if err := os.Mkdir("ok", 0o755); err != nil {
		return err
	}
	top, err := os.Getwd()
	if err != nil {
		return err
	}
	ok, err := unix.Open("ok", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	bad, err := unix.Open(protected, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	evil := filepath.Join(top, "evil")
	if err := os.WriteFile(evil, []byte("evil\n"), 0o755); err != nil {
		return err
	}
	calls := []func(){
		func() {
			fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			unix.Bind(fd, &unix.SockaddrUnix{Name: name})
			unix.Close(fd)
		},
		func() { unix.Mkdir(name, 0o755) },
		func() { unix.Mknod(name, unix.S_IFREG|0o755, 0) },
		func() { unix.Symlink(evil, name) },
		func() { unix.Link(evil, name) },
		func() { unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, name, unix.RENAME_NOREPLACE) },
		func() {
			fd, _ := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o755)
			unix.Close(fd)
		},
	}
	i := 0
	err = during(func() { unix.Fchdir(ok); unix.Fchdir(bad) }, tries/10, func() error {
		i++
		calls[i%len(calls)]()
		unix.Rename(filepath.Join(top, "ok", name), evil)
		unix.Unlink(filepath.Join(top, "ok", name))
		unix.Rmdir(filepath.Join(top, "ok", name))
		return nil
	})
	unix.Chdir(top)
	if st, e := os.Lstat(filepath.Join(protected, name)); err == nil && e == nil {
		err = fmt.Errorf("UNEXPECTED: %s has %s, %v", protected, name, st.Mode())
	}
	return err
}
