package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// parentNamespace opens the user namespace in which another was made (ioctl_ns(2)).
func parentNamespace(f *os.File) (*os.File, error) {
	const nsGetParent = 0xb702
	fd, err := unix.IoctlRetInt(int(f.Fd()), nsGetParent)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "parent of "+f.Name()), nil
}
