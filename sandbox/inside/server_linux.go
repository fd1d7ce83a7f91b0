package inside

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/function"
	"golang.org/x/sys/unix"
)

func init() {
	function.Register(Server, func(context.Context, io.Reader, io.Writer, ...string) error { return serve(0) })
}

// serve takes connections until the harness closes the socket.
func serve(socket int) error {
	var data [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(socket, data[:], oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return os.NewSyscallError("recvmsg", err)
		case n == 0:
			return nil
		}
		if fd := onlyDescriptor(oob[:oobn]); fd >= 0 {
			go serveConnection(fd)
		}
	}
}

// serveConnection answers the requests of one connection, one after the other.
func serveConnection(conn int) {
	defer unix.Close(conn)
	buf := make([]byte, maxMessage)
	for {
		n, _, err := unix.Recvfrom(conn, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		r, err := decodeRequest(buf[:n])
		if err != nil {
			return
		}
		fd, err := r.do()
		err = send(conn, answerOf(err), fd)
		if err == nil && fd >= 0 && r.writes() {
			err = send(conn, answer{}, -1) // the harness's descriptor is the only one
		}
		if err != nil {
			return
		}
	}
}

// send sends an answer, with its descriptor or -1, which it closes. While the user has as many descriptors on their way as the process may
// have open (ETOOMANYREFS, unix(7)), which other programs of that user decide, it waits: the harness closes the connection when it does not.
func send(conn int, a answer, fd int) error {
	if fd < 0 {
		return unix.Sendmsg(conn, a.encode(), nil, nil, unix.MSG_NOSIGNAL)
	}
	defer unix.Close(fd)
	for {
		err := unix.Sendmsg(conn, a.encode(), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
		if err != unix.ETOOMANYREFS && err != unix.EINTR {
			return err
		}
		time.Sleep(time.Millisecond)
		if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(conn), Events: unix.POLLRDHUP}}, 0); n > 0 {
			return err
		}
	}
}

// do carries a request out. The descriptor is -1 where there is none.
func (r request) do() (fd int, err error) {
	switch fd = -1; r.op {
	case opOpen:
		fd, err = open(r.name, int(r.flags)|unix.O_NONBLOCK|unix.O_NOCTTY, r.perm)
	case opStat:
		fd, err = open(r.name, unix.O_PATH, 0)
	case opLstat:
		fd, err = open(r.name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	case opMkdir:
		err = os.Mkdir(r.name, mode(r.perm))
	case opMkdirAll:
		err = os.MkdirAll(r.name, mode(r.perm))
	case opRemove:
		err = os.Remove(r.name)
	case opRemoveAll:
		err = os.RemoveAll(r.name)
	case opRename:
		err = os.Rename(r.name, r.other)
	case opSymlink:
		err = os.Symlink(r.other, r.name)
	}
	return fd, err
}

func open(name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, perm)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, err
		}
	}
}

// mode is the file mode of what the kernel has as one.
func mode(perm uint32) fs.FileMode {
	m := fs.FileMode(perm & 0o777)
	for bit, as := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if perm&bit != 0 {
			m |= as
		}
	}
	return m
}

// answerOf makes an answer of what package os returns.
func answerOf(err error) answer {
	if err == nil {
		return answer{}
	}
	a := answer{errno: uint32(unix.EIO)}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		a.errno = uint32(errno)
	} else if errors.Is(err, fs.ErrInvalid) {
		a.errno = uint32(unix.EINVAL)
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		a.op, a.path = e.Op, e.Path
	}
	return a
}

// onlyDescriptor returns the descriptor that came with a message; -1: there is none, or several, which are closed.
func onlyDescriptor(oob []byte) int {
	var all []int
	messages, _ := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		all = append(all, fds...)
	}
	if len(all) == 1 {
		return all[0]
	}
	for _, fd := range all {
		unix.Close(fd)
	}
	return -1
}
