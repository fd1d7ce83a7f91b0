package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// local makes a socket of UNIX.
func local(kind int) int { return sock(unix.AF_UNIX, kind) }

func at(name string) unix.Sockaddr { return &unix.SockaddrUnix{Name: name} }

// serves binds and listens at a name of UNIX.
func serves(kind int, name string) (int, error) {
	fd := local(kind)
	if err := unix.Bind(fd, at(name)); err != nil {
		return fd, fmt.Errorf("bind %q: %w", name, err)
	}
	return fd, unix.Listen(fd, 8)
}

// meet has a client connect, by a name, to a server, and gives it a descriptor and a word.
func meet(server, kind int, name string) error {
	fd := local(kind)
	defer unix.Close(fd)
	if err := unix.Connect(fd, at(name)); err != nil {
		return fmt.Errorf("connect to %q: %w", name, err)
	}
	if err := unix.Sendmsg(fd, []byte("word"), unix.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	got, _, err := unix.Accept4(server, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(got)
	b, oob := make([]byte, 8), make([]byte, 64)
	n, rights, _, _, err := unix.Recvmsg(got, b, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || string(b[:n]) != "word" || rights == 0 {
		return fmt.Errorf("%q heard %q with %d bytes of rights, %v", name, b[:n], rights, err)
	}
	return nil
}

// localSockets meets at sockets of its own in every way. The host's lie beside: host.sock, and @abstract.
func localSockets(abstract string) error {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		names := []string{fmt.Sprintf("own%d.sock", kind), filepath.Join(mustWd(), fmt.Sprintf("full%d", kind)), fmt.Sprintf("@own%d", kind), "@" + abstract + strings.Repeat("x", kind)}
		for _, name := range names {
			server, err := serves(kind, name)
			if err != nil {
				return err
			}
			again := unix.Listen(server, 4) // as asyncio does
			if err := errors.Join(again, meet(server, kind, name)); err != nil {
				return err
			}
			if err := ownName(server, kind); err != nil {
				return err
			}
			unix.Close(server)
			if err := unix.Connect(local(kind), at(name)); err != unix.ECONNREFUSED {
				return fmt.Errorf("to %q, which is closed: %v", name, err)
			}
		}
	}
	return errors.Join(otherNames(), manySockets(), childMeets(), takenName(abstract), fullLocal())
}

// ownName connects by the address that getsockname(2) tells.
func ownName(server, kind int) error {
	name, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	return meet(server, kind, name.(*unix.SockaddrUnix).Name)
}

// otherNames reaches a server by links and after a rename.
func otherNames() error {
	if err := errors.Join(os.Mkdir("d", 0o755), os.Symlink("d/new.sock", "link"), os.Symlink("d", "dir")); err != nil {
		return err
	}
	server, err := serves(unix.SOCK_STREAM, "d/first.sock")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Rename("d/first.sock", "d/new.sock"), os.Link("d/new.sock", "second")); err != nil {
		return err
	}
	for _, name := range []string{"d/new.sock", "link", "dir/new.sock", "second", "/proc/self/cwd/link"} {
		if err := meet(server, unix.SOCK_STREAM, name); err != nil {
			return err
		}
	}
	return nil
}

// manySockets: a server stays within reach when many others have come and gone.
func manySockets() error {
	server, err := serves(unix.SOCK_STREAM, "stays")
	if err != nil {
		return err
	}
	for range 2*boundRoom + socketRoom {
		fd, err := serves(unix.SOCK_STREAM, "goes")
		unix.Close(fd)
		if err := errors.Join(err, os.Remove("goes")); err != nil {
			return err
		}
	}
	return meet(server, unix.SOCK_STREAM, "stays")
}

// childMeets has a child connect.
func childMeets() error {
	server, err := serves(unix.SOCK_STREAM, "child.sock")
	if err != nil {
		return err
	}
	child := exec.Command("/proc/self/exe", "localdial", "child.sock")
	if out, err := child.CombinedOutput(); err != nil {
		return fmt.Errorf("the child: %s %w", out, err)
	}
	fd, _, err := unix.Accept4(server, unix.SOCK_CLOEXEC)
	unix.Close(fd)
	return err
}

// takenName: the tool's abstract names are no names of the host's.
func takenName(abstract string) error {
	server, err := serves(unix.SOCK_STREAM, "@"+abstract) // the host has it already
	if err != nil {
		return err
	}
	if err := meet(server, unix.SOCK_STREAM, "@"+abstract); err != nil {
		return err
	}
	if _, err := serves(unix.SOCK_STREAM, "@"+strings.Repeat("n", 100)); err != unix.EINVAL && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("a name with no room for the supervisor's: %v", err)
	}
	return nil
}

// fullLocal: a connect that would wait for a queue with room ends, and one that does not wait is told so.
func fullLocal() error {
	server := local(unix.SOCK_STREAM)
	if err := errors.Join(unix.Bind(server, at("full.sock")), unix.Listen(server, 0)); err != nil {
		return err
	}
	if err := unix.Connect(local(unix.SOCK_STREAM), at("full.sock")); err != nil {
		return err
	}
	for kind, want := range map[int]error{unix.SOCK_STREAM: unix.ETIMEDOUT, unix.SOCK_STREAM | unix.SOCK_NONBLOCK: unix.EAGAIN} {
		if err := unix.Connect(local(kind), at("full.sock")); err != want {
			return fmt.Errorf("to a full queue: %v, want %v", err, want)
		}
	}
	return nil
}

// hostSockets tries to reach host.sock, which the host serves, and to serve the host.
func hostSockets(abstract string) error {
	dir := mustWd()
	deep := filepath.Join(dir, strings.Repeat("d", 200))
	own, err := serves(unix.SOCK_STREAM, "first.sock")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Symlink("host.sock", "hostlink"), os.Symlink(dir, "hostdir"), os.Mkdir(deep, 0o755), os.Rename("first.sock", "own.sock")); err != nil {
		return err
	}
	for _, name := range []string{"host.sock", dir + "/host.sock", "hostlink", "hostdir/host.sock", "./x/../host.sock", "/proc/self/cwd/host.sock", "/proc/self/root" + dir + "/host.sock", "@" + abstract, "@"} {
		if err := unix.Connect(local(unix.SOCK_STREAM), at(name)); err == nil {
			return fmt.Errorf("UNEXPECTED: connected to %q", name)
		}
	}
	if err := os.Chdir(deep); err != nil { // the address is short, the path is not
		return err
	}
	if err := unix.Connect(local(unix.SOCK_STREAM), at("../host.sock")); err != unix.EACCES {
		return fmt.Errorf("UNEXPECTED: by a long way: %v", err)
	}
	if err := errors.Join(os.Chdir(dir), os.Link("host.sock", "second.sock"), os.Rename("second.sock", "own2.sock")); err != nil {
		return err
	}
	for _, name := range []string{"own2.sock", "own.sock"} { // the test exchanges the second and another of the host's without an end
		for range 200 {
			if err := unix.Connect(local(unix.SOCK_STREAM|unix.SOCK_NONBLOCK), at(name)); err == nil && name == "own2.sock" {
				return errors.New("UNEXPECTED: connected to a second name of the host's")
			}
		}
	}
	unix.Close(own)
	return hostPorts()
}

// hostPorts tries to serve at the host's network.
func hostPorts() error {
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"to listen without a port", unix.Listen(tcp(unix.AF_INET), 1), unix.EACCES},
		{"to listen without a name", unix.Listen(local(unix.SOCK_STREAM), 1), unix.EACCES},
		{"a name that the kernel chooses", unix.Bind(local(unix.SOCK_STREAM), at("")), unix.EINVAL},
		{"a socket of datagrams", unix.Bind(localPair(unix.SOCK_DGRAM), at("gram")), unix.EACCES},
		{"a protected name", unix.Bind(local(unix.SOCK_STREAM), at(".envrc")), unix.EACCES},
	} {
		if c.err != c.want {
			return fmt.Errorf("UNEXPECTED: %s: %v, want %v", c.name, c.err, c.want)
		}
	}
	return nil
}

// localPair is a socket that only one end of a pair can be, where the supervisor makes no other.
func localPair(kind int) int {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		die("socketpair", err)
	}
	return pair[0]
}
