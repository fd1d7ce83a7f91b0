package stage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// SessionSocket makes a socket of a session: the harness's end, which its commands' stages get too, and init's.
func SessionSocket() (harness, init *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "holdfast session"), os.NewFile(uintptr(fds[1]), "holdfast session"), nil
}

// Duplicate returns another descriptor of a file.
func Duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if cerr := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		return nil, cerr
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// EndSession asks a session's init to end it.
func EndSession(harness *os.File) error { return request(harness, wire.RequestEnd) }

// SessionLives reports whether there is an init that listens.
func SessionLives(harness *os.File) bool { return request(harness, wire.RequestNone) == nil }

// AskSession asks a session's init for a step of a pause, and returns when it was done. owed counts the answers that init owes: each request has one, and
// one that comes too late is not taken for the next request's. It is not for concurrent use.
func AskSession(harness *os.File, kind uint32, owed *int, patience time.Duration) error {
	if err := request(harness, kind); err != nil {
		return err
	}
	raw, err := harness.SyscallConn()
	if err != nil {
		return err
	}
	*owed++
	end := time.Now().Add(patience)
	if cerr := raw.Control(func(fd uintptr) {
		for *owed > 0 && (err == nil || err == unix.EINTR) {
			n := 0
			wait := int(max(0, time.Until(end).Milliseconds()))
			if n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, wait); err == nil && n == 0 {
				err = os.ErrDeadlineExceeded
			} else if err == nil {
				if n, _, err = unix.Recvfrom(int(fd), make([]byte, 1), 0); n > 0 {
					*owed--
				} else if err == nil {
					err = io.EOF
				}
			}
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

func request(harness *os.File, kind uint32) error {
	raw, err := harness.SyscallConn()
	if err != nil {
		return err
	}
	r := wire.Request{Kind: kind}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Send(int(fd), bytesOf(&r), unix.MSG_NOSIGNAL) }); cerr != nil {
		return cerr
	}
	return err
}

// MostSessionFiles is how many descriptors the tool of a session's command may have.
const MostSessionFiles = wire.MaxPassed - wire.PassedFirst

// Follow reads what is said of a session's command, and calls started once the tool was executed or will never be, evident once the
// evidence has come or never will, and returns when the tool has ended, or the command as a whole. Once over is closed, which says that
// the command's stage has ended, a tool whose end has not been told is killed with all that it has started: init sees to
// that when their warden is dead. It is waited for most at the longest: then Stuck says who is left.
func (c *Control) Follow(over <-chan struct{}, most time.Duration, started, evident func()) {
	var waiting sync.WaitGroup
	sock, ended := c.sock, make(chan struct{})
	waiting.Go(func() {
		select {
		case <-over:
			sock.SetReadDeadline(time.Unix(1, 0))
		case <-ended:
		}
	})
	c.until(most, func() bool { return c.Started || c.Failed != nil })
	started()
	c.until(most, func() bool { return !c.Started || c.Evidence != nil })
	evident()
	c.until(most, func() bool { return c.ToolEnded })
	close(ended)
	waiting.Wait()
	sock.SetReadDeadline(time.Time{})
}

// AwaitInit reads until it is known who init is, or that this will not be said, and returns its number; 0: it is not known.
func (c *Control) AwaitInit() int {
	for c.InitPID == 0 && c.next() == nil {
	}
	return c.PID()
}

// until reads until something is so, or no more comes. What comes after MsgGone is the end of the socket, and not before a pause is over: a process that it has
// stopped right after its fork may have a copy.
func (c *Control) until(most time.Duration, done func() bool) {
	for !done() && !c.Gone && c.Stuck == 0 {
		switch err := c.next(); {
		case errors.Is(err, os.ErrDeadlineExceeded) && c.doomed:
			c.Stuck = max(c.PID(), 1)
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.cutOff(most)
		case err != nil:
			return
		}
	}
}

// cutOff kills the warden if what has arrived does not tell of the tool's end. One that is not known is waited for without end: it may be stopped for a pause.
func (c *Control) cutOff(most time.Duration) {
	c.sock.SetReadDeadline(time.Time{})
	if !c.ToolEnded {
		c.doomed = true
		if c.KillInit(); c.init != nil {
			c.sock.SetReadDeadline(time.Now().Add(most))
		}
	}
}

// Discard reads what is left and changes nothing: the fields are others' to read by now. Once over is closed it reads what has come, and no more.
func (c *Control) Discard(over <-chan struct{}) {
	if over != nil && c.sock != nil {
		sock, ended := c.sock, make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-over:
				sock.SetReadDeadline(time.Unix(1, 0))
			case <-ended:
			}
		}()
	}
	for c.sock != nil && !c.Gone {
		var m wire.Message
		_, fd, err := receive(c.sock, bytesOf(&m))
		if fd >= 0 {
			unix.Close(fd)
		}
		if err != nil || m.Kind == wire.MsgGone {
			return
		}
	}
}

// Left reports whether the tool of a session's command, which has ended, has left processes, and true where /proc does not say. They are the warden's children or
// descend from these; a list of children that is empty is whole (get_children_pid in fs/proc/array.c). A warden that has ended has left nothing.
func (c *Control) Left() (left bool) {
	raw, err := c.init.SyscallConn()
	if err != nil {
		return true
	}
	raw.Control(func(fd uintptr) {
		pid := PIDOf(fd)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		left = pid >= 0 && (err != nil || len(text) > 0) && PIDOf(fd) == pid
	})
	return left
}

// Process returns a pidfd of the process that the run's end waits for, which stays the Control's; nil: it is not known. For a
// session's command it is the warden.
func (c *Control) Process() *os.File { return c.init }
