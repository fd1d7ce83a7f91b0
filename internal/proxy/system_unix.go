//go:build unix

package proxy

import "syscall"

// maxFiles is how many files the process may have open.
func maxFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > 1<<30 {
		return 1 << 30
	}
	return int(l.Cur)
}

// disableBroadcast takes from a socket what package net gives every one for datagrams: that
// it may send to a network's broadcast address, which no range tells.
func disableBroadcast(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 0)
	})
	if err == nil {
		err = failed
	}
	return err
}
