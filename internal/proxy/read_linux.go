package proxy

import (
	"io"
	"net"
	"syscall"
)

// reader returns a function that reads up to most bytes of a connection into a
// buffer from the pool, which it takes when there are bytes, not while it waits
// for them.
func reader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) {
	s, ok := unwrapConn(c).(syscall.Conn)
	if !ok {
		return blockingReader(c)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return blockingReader(c)
	}
	var b *[bufferSize]byte
	var n int
	var room int64
	var failed error
	try := func(fd uintptr) bool {
		b = buffers.Get().(*[bufferSize]byte)
		for {
			if n, failed = syscall.Read(int(fd), b[:room]); failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			buffers.Put(b)
			b = nil
			return false
		}
		return true
	}
	return func(most int64) (*[bufferSize]byte, int, error) {
		b, n, failed, room = nil, 0, nil, min(most, bufferSize)
		if err := raw.Read(try); err != nil {
			return b, 0, err
		}
		switch {
		case failed != nil:
			return b, 0, failed
		case n == 0:
			return b, 0, io.EOF
		}
		return b, n, nil
	}
}
