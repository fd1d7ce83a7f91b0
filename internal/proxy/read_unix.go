//go:build unix

package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reader returns a function that reads up to most bytes of a connection into a
// buffer from the pool, which it takes when there are bytes, not while it waits
// for them.
func reader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) {
	raw := rawConn(c)
	if raw == nil {
		return blockingReader(c)
	}
	var b *[bufferSize]byte
	var n int
	var room int64
	var failed error
	try := func(fd uintptr) bool {
		b = buffers.Get().(*[bufferSize]byte)
		if n, failed = readNow(fd, b[:room]); failed == os.ErrDeadlineExceeded {
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
		return b, n, failed
	}
}

// rawConn is the socket of a connection; nil: it has none.
func rawConn(c net.Conn) syscall.RawConn {
	if s, ok := unwrapConn(c).(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// waitGone waits until a client is gone that has ended its sending half: it has reset the connection, or has closed its socket. The error is of the
// connection's deadline for reads.
func (g *Proxy) waitGone(c net.Conn) error {
	for inner := c; inner != nil; {
		switch w := inner.(type) {
		case *tls.Conn:
			inner = w.NetConn()
			continue
		case *replayConn:
			inner = w.Conn
			continue
		case interface{ unwrap() net.Conn }:
			inner = w.unwrap()
			continue
		case interface{ WaitGone() error }: // a captured program's
			return w.WaitGone()
		}
		c, inner = inner, nil
	}
	tcp, is := c.(*net.TCPConn)
	raw := rawConn(c)
	if !is || raw == nil {
		return nil
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for look := time.NewTicker(lookEvery); ; {
			select {
			case <-over:
				look.Stop()
				return
			case <-look.C:
				if clientClosed(g.cfg.Sockets(), tcp) {
					tcp.CloseWrite() // with both halves ended the poll below returns
				}
			}
		}
	}()
	return raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 0)
		return n != 0 || err != nil && err != unix.EINTR // POLLHUP, POLLERR
	})
}

// readNow reads what has come, and does not wait: with os.ErrDeadlineExceeded nothing has.
func readNow(fd uintptr, p []byte) (n int, err error) {
	for {
		switch n, err = syscall.Read(int(fd), p); {
		case err == nil && n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err == syscall.EAGAIN:
			return 0, os.ErrDeadlineExceeded
		case err != syscall.EINTR:
			return 0, err
		}
	}
}

// readNow is Read, but fails as at a deadline where that would wait.
func (c *meteredConn) readNow(p []byte) (n int, err error) {
	raw := rawConn(c.Conn)
	if raw == nil {
		return 0, syscall.ENOTSUP // its connection is not used again
	}
	failed := raw.Read(func(fd uintptr) bool {
		n, err = readNow(fd, p)
		return true
	})
	if failed != nil {
		return 0, failed
	}
	return n, err
}
