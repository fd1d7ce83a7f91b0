//go:build unix

package egress

import (
	"errors"
	"net"
	"syscall"
)

// silent reports whether a connection is open and has nothing to be read.
func silent(c net.Conn) bool {
	_, err := peek(c)
	return err == syscall.EAGAIN
}

// gone reports whether the other side has ended a connection, and nothing is
// left to be read of it.
func gone(c net.Conn) bool {
	n, err := peek(c)
	return n == 0 && err != syscall.EAGAIN && err != errNoPeek
}

// errNoPeek: the connection is not the kernel's.
var errNoPeek = errors.New("no descriptor")

// peek looks at what is to be read, without waiting for it.
func peek(c net.Conn) (n int, err error) {
	s, ok := bare(c).(syscall.Conn)
	if !ok {
		return 0, errNoPeek
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	if failed != nil {
		err = failed
	}
	return max(n, 0), err
}
