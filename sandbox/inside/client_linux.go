package inside

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Start starts the server with a socket as its standard input, which it closes, and returns an error when ctx ends before that is done. kill ends the
// server; gone is closed when it has ended, or is about to.
type Start func(ctx context.Context, socket *os.File) (kill func(), gone <-chan struct{}, err error)

// A client is the harness's half: the server that runs, and connections to it that are free.
type client struct {
	start    Start
	over     func() error // the session's error if it has ended; nil: it lives
	patience time.Duration
	slots    chan struct{} // one for each request that may be under way

	mu     sync.Mutex // nothing waits with it
	server *server    // nil: the next request starts one
}

// A server is one process, from its start to its death.
type server struct {
	begun    chan struct{} // closed: it runs, or failed says why it does not; the next three are set
	failed   error
	kill     func()
	gone     <-chan struct{}
	socket   *os.File
	checking atomic.Bool // whether it answers
	mu       sync.Mutex
	free     []*os.File
	dead     bool
}

// mostRequests is how many requests are under way at once, and mostFree how many connections are kept. patience is how long the server may take to
// start, and to answer a request whose context has no deadline.
const mostRequests, mostFree, patience = 64, 8, 30 * time.Second

func newClient(start Start, over func() error) *client {
	return &client{start: start, over: over, patience: patience, slots: make(chan struct{}, mostRequests)}
}

// limit returns ctx with a limit of the client's own, after which its cause says that the server has not done something.
func (c *client) limit(ctx context.Context, done string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.patience, &ServerError{Problem: "has not " + done + " in time", Err: os.ErrDeadlineExceeded})
}

// ask sends a request and returns the answer, with its descriptor or -1. The error is not the file's: there is no answer.
func (c *client) ask(ctx context.Context, r request) (answer, int, error) {
	own := ctx
	if _, has := ctx.Deadline(); !has {
		limited, cancel := c.limit(ctx, "answered")
		defer cancel()
		ctx = limited
	}
	if ctx.Err() != nil {
		return answer{}, -1, context.Cause(ctx)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return answer{}, -1, context.Cause(ctx)
	}
	s, err := c.running(ctx)
	if err != nil {
		return answer{}, -1, err
	}
	a, fd, err := s.ask(ctx, r)
	switch {
	case err == nil:
	case own.Err() != nil: // the caller has given it up, which says nothing of the server
		c.check(s)
	default:
		c.drop(s) // it is dead, stopped or hostile
		err = cmp.Or(c.over(), err)
	}
	return a, fd, err
}

// running returns the server, which it starts if there is none: for all that ask meanwhile, and not for as long as one of them waits.
func (c *client) running(ctx context.Context) (*server, error) {
	c.mu.Lock()
	if c.server == nil || c.server.ended() {
		c.server = &server{begun: make(chan struct{})}
		go c.begin(c.server)
	}
	s := c.server
	c.mu.Unlock()
	select {
	case <-s.begun:
		return s, s.failed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin starts a server.
func (c *client) begin(s *server) {
	defer close(s.begun)
	ctx, cancel := c.limit(context.Background(), "started")
	defer cancel()
	ours, its, err := pair()
	if err == nil {
		s.kill, s.gone, err = c.start(ctx, its)
	}
	if err != nil {
		ours.Close() // a nil one does not mind
		s.failed = err
		c.forget(s)
		return
	}
	s.socket = ours
	go func() {
		<-s.gone
		s.end()
	}()
}

// ended reports whether it was begun, and is gone.
func (s *server) ended() bool {
	select {
	case <-s.begun:
	default:
		return false
	}
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// forget has the next request start another server.
func (c *client) forget(s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == s {
		c.server = nil
	}
}

// drop ends a server.
func (c *client) drop(s *server) {
	c.forget(s)
	s.end()
	s.kill()
}

// check drops a server that answers nothing.
func (c *client) check(s *server) {
	if !s.checking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.checking.Store(false)
		ctx, cancel := c.limit(context.Background(), "answered")
		defer cancel()
		_, fd, err := s.ask(ctx, request{op: opLstat, name: "/"})
		if err != nil {
			c.drop(s)
		} else if fd >= 0 {
			unix.Close(fd)
		}
	}()
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

// ask is client.ask, of this server.
func (s *server) ask(ctx context.Context, r request) (answer, int, error) {
	conn, err := s.connection(ctx)
	if err != nil {
		return answer{}, -1, noAnswer(ctx, err)
	}
	a, fd, err := roundTrip(ctx, conn, r)
	if err != nil {
		conn.Close()
		return answer{}, -1, noAnswer(ctx, err)
	}
	s.keep(conn)
	return a, fd, nil
}

// connection returns a free one, or makes one.
func (s *server) connection(ctx context.Context) (*os.File, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		defer s.mu.Unlock()
		f := s.free[n-1]
		s.free = s.free[:n-1]
		return f, nil
	}
	s.mu.Unlock()
	ours, its, err := pair()
	if err != nil {
		return nil, err
	}
	defer its.Close()
	if err := s.pass(ctx, its); err != nil {
		ours.Close()
		return nil, err
	}
	return ours, nil
}

// pass sends the server its end of a connection. It looks again while the socket is full, which that of a server that takes nothing is, and while the
// user has too many descriptors on their way (see send).
func (s *server) pass(ctx context.Context, its *os.File) error {
	raw, err := s.socket.SyscallConn()
	if err != nil {
		return err
	}
	for {
		if cerr := raw.Control(func(fd uintptr) {
			err = unix.Sendmsg(int(fd), []byte{0}, unix.UnixRights(int(its.Fd())), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		}); cerr != nil {
			return cerr
		}
		if err != unix.EAGAIN && err != unix.ETOOMANYREFS && err != unix.EINTR {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
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

// roundTrip has a connection for itself, until the end of ctx.
func roundTrip(ctx context.Context, conn *os.File, r request) (a answer, fd int, err error) {
	conn.SetDeadline(time.Time{})
	defer endWith(ctx, conn)()
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
		return a, -1, err
	}
	a, fd, err = receive(raw, r.op <= opLstat)
	if err == nil && fd >= 0 && r.writes() {
		if _, _, err = receive(raw, false); err != nil {
			unix.Close(fd)
			fd = -1
		}
	}
	return a, fd, err
}

// endWith ends what waits for a connection when ctx is done, and, once what it returns has returned, nothing later.
func endWith(ctx context.Context, conn *os.File) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		conn.SetDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// receive reads one answer, which has a descriptor if it is asked for and is no error.
func receive(raw syscall.RawConn, wanted bool) (a answer, fd int, err error) {
	var buf [maxMessage]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, flags := 0, 0, 0
	rerr := raw.Read(func(fd uintptr) bool {
		n, oobn, flags, _, err = unix.Recvmsg(int(fd), buf[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	if err = errors.Join(rerr, err); err != nil {
		return a, -1, err
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
	if failed := (*ServerError)(nil); errors.As(err, &failed) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &ServerError{Problem: "has ended", Err: err}
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
