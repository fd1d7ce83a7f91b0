package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// dialer makes the socket of the requests: one end goes up, the other stays with
// init, which the tool can neither read nor take descriptors from.
func (c *compiler) dialer(a plan.Dialer) error {
	switch {
	case !c.inNet:
		return errNotInside
	case c.t.header.Flags&wire.FlagAsPID1 != 0:
		return errors.New("init is outside of the sandbox's network")
	}
	pair := c.data(make([]byte, 8))
	c.call(unix.SYS_SOCKETPAIR, imm(unix.AF_UNIX), imm(unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), imm(0), pair)
	c.save(wire.OpLoad32, wire.RegDialer, pair)
	c.save(wire.OpLoad32, regSocket, ptr(pair.v+4))
	c.pass(regSocket, a.Slot)
	return nil
}

// A Dialer asks a sandbox's init for sockets of the sandbox's network. Its methods
// may be called by several goroutines.
type Dialer struct {
	mu   sync.Mutex
	sock *os.File
	last uint32
}

// NewDialer returns the Dialer that asks over what Received has returned for a
// plan.Dialer's slot. It owns the file from then on.
func NewDialer(request *os.File) *Dialer { return &Dialer{sock: request} }

// Close closes the socket of the requests.
func (d *Dialer) Close() error { return d.sock.Close() }

// Dial connects to an address inside. It returns an error that wraps os.ErrClosed
// or io.EOF when the sandbox is gone.
func (d *Dialer) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	f, err := d.socket(ctx, to.Addr().Is4())
	if err == nil {
		defer f.Close()
		err = connect(ctx, f, to)
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: err}
	}
	return net.FileConn(f)
}

// socket gets an unconnected socket. Answers to requests that were not waited for to
// the end are skipped.
func (d *Dialer) socket(ctx context.Context, v4 bool) (*os.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sock.SetDeadline(time.Time{})
	defer endWith(ctx, d.sock)()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.last++
	request := wire.DialRequest{Family: unix.AF_INET6, Number: d.last}
	if v4 {
		request.Family = unix.AF_INET
	}
	_, err := d.sock.Write(bytesOf(&request))
	for err == nil {
		var answer wire.DialRequest
		var fd int
		if answer, fd, err = d.receive(); err == nil && answer.Number == d.last {
			if answer.Errno != 0 {
				return nil, os.NewSyscallError("socket", syscall.Errno(answer.Errno))
			}
			if fd < 0 {
				return nil, os.NewSyscallError("recvmsg", unix.EMFILE)
			}
			return os.NewFile(uintptr(fd), "socket of a sandbox"), nil
		}
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("ask the sandbox for a socket: %w", err)
}

func (d *Dialer) receive() (answer wire.DialRequest, fd int, err error) {
	n, fd, err := receive(d.sock, bytesOf(&answer))
	if err == nil && n != int(unsafe.Sizeof(answer)) {
		answer = wire.DialRequest{}
	}
	return answer, fd, err
}

// endWith ends what waits for f when ctx is done. What it returns makes sure that
// it does nothing later.
func endWith(ctx context.Context, f *os.File) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		f.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// connect connects a socket and waits until it is or ctx is done.
func connect(ctx context.Context, f *os.File, to netip.AddrPort) error {
	defer endWith(ctx, f)()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	begun := false
	waitErr := raw.Write(func(fd uintptr) bool {
		if !begun {
			begun = true
			err = unix.Connect(int(fd), sockaddrOf(to))
			return err != unix.EINPROGRESS
		}
		var errno int
		if errno, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && errno != 0 {
			err = syscall.Errno(errno)
		} else if err == nil {
			_, err = unix.Getpeername(int(fd)) // it may have been woken too early
		}
		return err != unix.ENOTCONN
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waitErr != nil {
		return waitErr
	}
	return os.NewSyscallError("connect", err)
}

func sockaddrOf(to netip.AddrPort) unix.Sockaddr {
	if to.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}
