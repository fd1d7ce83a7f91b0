package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// ownSockets uses sockets in the ways in which one that another process has made could differ from one's own.
func ownSockets(good int) error {
	ok := inet4(127, 0, 0, 1, good)
	for _, use := range []struct {
		name string
		call func(ok []byte) error
	}{
		{"flags of socket(2)", socketFlags}, {"options that were set before", socketOptions}, {"a duplicate is connected", socketDuplicate},
		{"a child is given it", socketOfChild}, {"a poll that began before", socketPolled}, {"the server sees the end", socketEnd},
		{"connected again", socketAgain}, {"more sockets than are known", socketMany}, {"a limit on descriptors", socketLimit},
		{"interfaces are asked for", socketInterfaces},
	} {
		if err := use.call(ok); err != nil {
			return fmt.Errorf("UNEXPECTED: %s: %w", use.name, err)
		}
	}
	return nil
}

func socketFlags([]byte) error {
	for _, flags := range []int{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|flags, 0)
		if err != nil {
			return err
		}
		onExec, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		status, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if (onExec&unix.FD_CLOEXEC != 0) != (flags&unix.SOCK_CLOEXEC != 0) || (status&unix.O_NONBLOCK != 0) != (flags&unix.SOCK_NONBLOCK != 0) {
			return fmt.Errorf("flags %#x give %#x and %#x", flags, onExec, status)
		}
		unix.Close(fd)
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262); err != unix.EACCES { // IPPROTO_MPTCP
		return fmt.Errorf("a socket of MPTCP: %d, %v", fd, err)
	}
	return nil
}

// socketInterfaces asks for the interfaces in the ways of libraries: with bind(2), without, by datagrams, and told of changes.
func socketInterfaces(ok []byte) error {
	for _, kind := range []int{unix.SOCK_RAW, unix.SOCK_DGRAM} {
		for _, groups := range []uint32{0, unix.RTMGRP_LINK, noBind} {
			fd := sock(unix.AF_NETLINK, kind)
			defer unix.Close(fd)
			if groups != noBind {
				if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
					return fmt.Errorf("bind to groups %#x: %w", groups, err)
				}
				if name, err := unix.Getsockname(fd); err != nil || name.(*unix.SockaddrNetlink).Pid == 0 || name.(*unix.SockaddrNetlink).Groups != groups {
					return fmt.Errorf("bound to %+v, %w", name, err)
				}
				if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != unix.EINVAL {
					return fmt.Errorf("bound again: %w", err)
				}
			}
			n, err := askForInterfaces(fd)
			if err != nil || n == 0 {
				return fmt.Errorf("kind %d, groups %#x: %d bytes, %w", kind, groups, n, err)
			}
		}
	}
	fd := sock(unix.AF_NETLINK, unix.SOCK_RAW)
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(os.Getpid())}); err != unix.EADDRINUSE {
		return fmt.Errorf("a number of the tool's choice: %w", err)
	}
	if err := rawConnect(fd, ok, 16); err != unix.EINVAL {
		return fmt.Errorf("connect to TCP: %w", err)
	}
	for _, protocol := range []int{unix.NETLINK_XFRM, unix.NETLINK_SOCK_DIAG, unix.NETLINK_GENERIC} {
		if _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol); err != unix.EACCES {
			return fmt.Errorf("netlink of protocol %d: %w", protocol, err)
		}
	}
	_, err := net.Interfaces()
	return err
}

// noBind stands for a socket that is not bound, as musl's is not.
const noBind = ^uint32(0)

// askForInterfaces sends RTM_GETLINK and returns the size of the first part of the answer.
func askForInterfaces(fd int) (int, error) {
	b := make([]byte, unix.NLMSG_HDRLEN+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 1<<15)
	n, err := unix.Read(fd, answer)
	if err == nil && binary.NativeEndian.Uint16(answer[4:]) != unix.RTM_NEWLINK {
		err = fmt.Errorf("an answer of type %d", binary.NativeEndian.Uint16(answer[4:]))
	}
	return n, err
}

func socketOptions(ok []byte) error {
	fd := tcp(unix.AF_INET)
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil {
		return err
	}
	if err := rawConnect(fd, ok, 16); err != nil {
		return err
	}
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE); err != nil || on == 0 {
		return fmt.Errorf("SO_KEEPALIVE is %d, %w", on, err)
	}
	return nil
}

func socketDuplicate(ok []byte) error {
	fd := tcp(unix.AF_INET)
	defer unix.Close(fd)
	other, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	defer unix.Close(other)
	if err := rawConnect(other, ok, 16); err != nil {
		return err
	}
	_, err = unix.Getpeername(fd)
	return err
}

// socketOfChild has a child connect the socket that it inherits.
func socketOfChild(ok []byte) error {
	fd := tcp(unix.AF_INET)
	defer unix.Close(fd)
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(own), "socket")
	defer file.Close()
	cmd := exec.Command("/proc/self/exe", "connectthird", fmt.Sprint(int(ok[2])<<8|int(ok[3])))
	cmd.ExtraFiles = []*os.File{file}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	_, err = unix.Getpeername(fd)
	return err
}

// socketPolled registers a socket before it is connected, and hears of it.
func socketPolled(ok []byte) error {
	fd := sock(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	defer unix.Close(fd)
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(poll)
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return err
	}
	if err := rawConnect(fd, ok, 16); err != nil && err != unix.EINPROGRESS {
		return err
	}
	for events := make([]unix.EpollEvent, 1); ; { // the server closes
		n, err := unix.EpollWait(poll, events, -1)
		if err == unix.EINTR || err == nil && events[0].Events&unix.EPOLLIN == 0 {
			continue
		}
		if n, err := unix.Read(fd, make([]byte, 1)); n != 0 || err != nil {
			return fmt.Errorf("read %d, %v", n, err)
		}
		if n != 1 || err != nil {
			return fmt.Errorf("%d events, %v", n, err)
		}
		return nil
	}
}

// socketEnd: the supervisor keeps no connection open that the tool has closed. A connected socket that another process has as well would
// leave the server's end without an end of file.
func socketEnd(ok []byte) error {
	before, err := boss()
	if err != nil {
		return err
	}
	for _, flags := range []int{0, unix.SOCK_NONBLOCK} {
		fd := sock(unix.AF_INET, unix.SOCK_STREAM|flags)
		if err := rawConnect(fd, ok, 16); err != nil && err != unix.EINPROGRESS {
			return err
		}
		unix.Close(fd)
	}
	if after, err := boss(); err != nil || after > before {
		return fmt.Errorf("the supervisor has %d sockets, and had %d: %w", after, before, err)
	}
	return nil
}

// boss counts the sockets of the supervisor, which here is another process of the same user.
func boss() (n int, err error) {
	dir := "/proc/" + os.Getenv("GUARD_SUPERVISOR") + "/fd"
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n, err
}

func socketAgain(ok []byte) error {
	fd := tcp(unix.AF_INET)
	defer unix.Close(fd)
	if err := rawConnect(fd, ok, 16); err != nil {
		return err
	}
	if err := rawConnect(fd, ok, 16); err != unix.EISCONN {
		return fmt.Errorf("once more: %w", err)
	}
	closed := tcp(unix.AF_INET)
	unix.Close(closed)
	if err := rawConnect(closed, ok, 16); err != unix.EBADF {
		return fmt.Errorf("a closed one: %w", err)
	}
	return nil
}

// socketMany: the newest can be connected, and one that is forgotten cannot.
func socketMany(ok []byte) error {
	first := tcp(unix.AF_INET)
	var rest []int
	for range socketRoom {
		rest = append(rest, tcp(unix.AF_INET))
	}
	err := rawConnect(first, ok, 16)
	if err == unix.EACCES {
		err = errors.Join(rawConnect(rest[0], ok, 16), rawConnect(rest[socketRoom-1], ok, 16))
	} else {
		err = fmt.Errorf("the oldest: %w", err)
	}
	for _, fd := range append(rest, first) {
		unix.Close(fd)
	}
	return err
}

func socketLimit(ok []byte) error {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		return err
	}
	_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); e != nil || err != unix.EMFILE {
		return fmt.Errorf("%v, %v", err, e)
	}
	fd := tcp(unix.AF_INET)
	defer unix.Close(fd)
	return rawConnect(fd, ok, 16)
}

// TestKernelWithoutCallsIntoOtherProcesses: where process_vm_readv(2) is refused the supervisor reads by /proc/PID/mem, and holds the same.
func TestKernelWithoutCallsIntoOtherProcesses(t *testing.T) {
	cases := []struct{ name, script string }{
		{"what works and what is refused", `mkdir d; echo 1 >d/f; mv d/f g; ln g h; chmod 700 g; grep -qx 1 h; rm g h; ! echo evil >.envrc; ! mkdir .idea; ! mv d .vscode; [ ! -e .envrc ]; "$SELF" memory`},
		{"the path is changed while it is read", `"$SELF" flip`},
		{"signals do not repeat a call", `"$SELF" storm`},
		{"a program hides its memory", `cp "$(command -v mkdir)" m; chmod 111 m; if ./m made; then [ "$(id -u)" = 0 ]; else [ ! -e made ]; fi`},
	}
	for user, uid := range users(t) {
		for i, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				if i > 0 {
					kerneltest.Long(t)
				}
				t.Parallel()
				dir, rules := workspace(t, uid)
				rules.MemFile = true
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoCalls: true, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") || strings.Contains(out, "UNEXPECTED") {
					t.Errorf("exit %d\n%s", code, out)
				}
				rules.MemFile = false // the call that is refused shows that it was
				if out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoCalls: true, Argv: []string{"bash", "-ec", "echo >made-by-call"}}); code == 0 {
					t.Errorf("process_vm_readv is not refused here:\n%s", out)
				}
			})
		}
	}
}
