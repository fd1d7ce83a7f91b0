package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Start starts the server with a socket as its standard input. kill ends it; gone is closed when it has ended.
type Start func(socket *os.File) (kill func(), gone <-chan struct{}, err error)

// A client is the harness's half: the server that runs, and connections to it that are free.
type client struct {
	start Start
	slots chan struct{} // one for each request that may be under way

	mu     sync.Mutex
	server *server
}

// A server is one process, from its start to its death.
type server struct {
	socket *os.File
	kill   func()
	gone   <-chan struct{}
	mu     sync.Mutex
	free   []*os.File
	dead   bool
}

// mostRequests is how many requests are under way at once, and mostFree how many connections are kept. patience is how long a request may take
// whose context has no deadline.
const mostRequests, mostFree, patience = 64, 8, 30 * time.Second

func newClient(start Start) *client {
	return &client{start: start, slots: make(chan struct{}, mostRequests)}
}

// ask sends a request and returns the answer, with its descriptor or -1. The error is not the file's: there is no answer.
func (c *client) ask(ctx context.Context, r request) (answer, int, error) {
	if _, has := ctx.Deadline(); !has {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	if ctx.Err() != nil {
		return answer{}, -1, waited(ctx)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return answer{}, -1, waited(ctx)
	}
	s, err := c.running()
	if err != nil {
		return answer{}, -1, err
	}
	conn, err := s.connection()
	if err != nil {
		c.drop(s)
		return answer{}, -1, fmt.Errorf("sandbox: connect to the file server: %w", err)
	}
	a, fd, err := roundTrip(ctx, conn, r)
	if err == nil {
		s.keep(conn)
		return a, fd, nil
	}
	conn.Close()
	if ctx.Err() != context.Canceled {
		c.drop(s) // it is dead, stopped or hostile; a request that its caller has given up says nothing of it
	}
	return answer{}, -1, err
}

// running returns the server, which it starts if there is none.
func (c *client) running() (*server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		select {
		case <-c.server.gone:
			c.server = nil
		default:
			return c.server, nil
		}
	}
	ours, its, err := pair()
	if err != nil {
		return nil, err
	}
	kill, gone, err := c.start(its)
	its.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	s := &server{socket: ours, kill: kill, gone: gone}
	go func() {
		<-gone
		s.end()
	}()
	c.server = s
	return s, nil
}

// drop ends a server: the next request starts another one.
func (c *client) drop(s *server) {
	c.mu.Lock()
	if c.server == s {
		c.server = nil
	}
	c.mu.Unlock()
	s.end()
	s.kill()
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket.Close()
	for _, f := range s.free {
		f.Close()
	}
	s.free, s.dead = nil, true
}

// connection returns a free one, or makes one.
func (s *server) connection() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		f := s.free[n-1]
		s.free = s.free[:n-1]
		return f, nil
	}
	ours, its, err := pair()
	if err != nil {
		return nil, err
	}
	defer its.Close()
	raw, err := s.socket.SyscallConn()
	if err == nil {
		until := time.Now().Add(patience)
		s.socket.SetWriteDeadline(until)
		werr := raw.Write(func(fd uintptr) bool {
			err = unix.Sendmsg(int(fd), []byte{0}, unix.UnixRights(int(its.Fd())), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			for err == unix.ETOOMANYREFS && time.Now().Before(until) { // see send
				time.Sleep(time.Millisecond)
				err = unix.Sendmsg(int(fd), []byte{0}, unix.UnixRights(int(its.Fd())), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			}
			return err != unix.EAGAIN && err != unix.EINTR
		})
		err = errors.Join(werr, err)
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

func (s *server) keep(f *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead || len(s.free) >= mostFree {
		f.Close()
		return
	}
	s.free = append(s.free, f)
}

// roundTrip has a connection for itself.
func roundTrip(ctx context.Context, conn *os.File, r request) (a answer, fd int, err error) {
	at, _ := ctx.Deadline()
	conn.SetDeadline(at)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return a, -1, err
	}
	message := r.encode()
	werr := raw.Write(func(fd uintptr) bool {
		err = unix.Sendmsg(int(fd), message, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	if err = errors.Join(werr, err); err != nil {
		return a, -1, noAnswer(ctx, err)
	}
	a, fd, err = receive(ctx, raw, r.op <= opLstat)
	if err == nil && fd >= 0 && r.writes() {
		if _, _, err = receive(ctx, raw, false); err != nil {
			unix.Close(fd)
			fd = -1
		}
	}
	return a, fd, err
}

// receive reads one answer, which has a descriptor if it is asked for and is no error.
func receive(ctx context.Context, raw syscall.RawConn, wanted bool) (a answer, fd int, err error) {
	var buf [maxMessage]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, flags := 0, 0, 0
	rerr := raw.Read(func(fd uintptr) bool {
		n, oobn, flags, _, err = unix.Recvmsg(int(fd), buf[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	if err = errors.Join(rerr, err); err != nil {
		return a, -1, noAnswer(ctx, err)
	}
	fd = onlyDescriptor(oob[:oobn])
	if n == 0 {
		err = &ServerError{Problem: "has ended"}
	} else if a, err = decodeAnswer(buf[:n]); err != nil || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || (fd >= 0) != (a.errno == 0 && wanted) {
		err = &ServerError{Problem: "has sent a malformed answer"}
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	return a, fd, err
}

// noAnswer is the error of a request that came to nothing.
func noAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return waited(ctx)
	}
	return &ServerError{Problem: "has ended", Err: err}
}

func waited(ctx context.Context) error {
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	return &ServerError{Problem: "has not answered in time", Err: os.ErrDeadlineExceeded}
}

// pair makes a connection. The first end is the harness's, which does not block.
func pair() (ours, its *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "file server"), os.NewFile(uintptr(fds[1]), "file server"), nil
}
