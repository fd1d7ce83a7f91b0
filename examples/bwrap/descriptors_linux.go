package main

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// inherited reports whether fd is a descriptor that the caller has passed. Those
// that this program's runtime has opened close on exec, and no option may name them.
func inherited(fd int) error {
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	if errno != 0 {
		return errno
	}
	if fd > 2 && flags&syscall.FD_CLOEXEC != 0 {
		return syscall.EBADF
	}
	return nil
}

// open makes a file of a descriptor that the caller has passed.
func open(fd int) (*os.File, error) {
	if err := inherited(fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "fd "+strconv.Itoa(fd)), nil
}

// readAll reads a descriptor to its end and leaves it open.
func readAll(fd int) ([]byte, error) {
	if err := inherited(fd); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	_, err := io.Copy(&data, rawFD(fd))
	return data.Bytes(), err
}

// rawFD reads and writes a descriptor that stays the caller's.
type rawFD int

// Read reads once.
func (fd rawFD) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write writes all of b.
func (fd rawFD) Write(b []byte) (int, error) {
	for done := 0; ; {
		n, err := syscall.Write(int(fd), b[done:])
		if err != nil && err != syscall.EINTR {
			return done, err
		}
		if done += max(n, 0); done == len(b) {
			return done, nil
		}
	}
}

// closeFD closes a descriptor that an option named, but not a standard one,
// whose number something else would get.
func closeFD(fd int) {
	if fd > 2 && inherited(fd) == nil {
		syscall.Close(fd)
	}
}

// closeOthers closes what the caller has passed and no option names, so that
// a reader of their other end does not wait for this program's end.
func closeOthers(named []int) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 && !slices.Contains(named, fd) {
			closeFD(fd)
		}
	}
}
