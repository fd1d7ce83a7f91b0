package supervisor

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var (
	any4, any6   = &unix.SockaddrInet4{}, &unix.SockaddrInet6{}
	loop4, loop6 = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
	mapped4      = &unix.SockaddrInet6{Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	mappedAny    = &unix.SockaddrInet6{Addr: [16]byte{10: 0xff, 11: 0xff}}
)

// to is an address with a port, and a socket of its family.
func to(addr unix.Sockaddr, port int) (int, unix.Sockaddr) {
	switch a := addr.(type) {
	case *unix.SockaddrInet4:
		return tcp(unix.AF_INET), &unix.SockaddrInet4{Addr: a.Addr, Port: port}
	case *unix.SockaddrInet6:
		return tcp(unix.AF_INET6), &unix.SockaddrInet6{Addr: a.Addr, Port: port}
	}
	return -1, nil
}

func portOf(fd int) int {
	switch a, _ := unix.Getsockname(fd); a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}

// servesAt binds and listens at a port, which the kernel chooses if it is 0.
func servesAt(addr unix.Sockaddr, port int, only6 bool) (int, int, error) {
	fd, at := to(addr, port)
	if only6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return fd, 0, err
		}
	}
	if err := unix.Bind(fd, at); err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("bind %+v: %w", at, err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		unix.Close(fd)
		return -1, 0, fmt.Errorf("listen at %+v: %w", at, err)
	}
	return fd, portOf(fd), nil
}

// dials connects, and has the server hear a word.
func dials(server int, addr unix.Sockaddr, port int) error {
	fd, at := to(addr, port)
	defer unix.Close(fd)
	if err := unix.Connect(fd, at); err != nil {
		return fmt.Errorf("connect to %+v: %w", at, err)
	}
	got, _, err := unix.Accept4(server, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(got)
	if _, err := unix.Write(fd, []byte("word")); err != nil {
		return err
	}
	b := make([]byte, 8)
	if n, err := unix.Read(got, b); err != nil || string(b[:n]) != "word" {
		return fmt.Errorf("at %+v the server heard %q, %v", at, b[:n], err)
	}
	return nil
}

// refuses: nothing serves at the port.
func refuses(addr unix.Sockaddr, port int) error {
	fd, at := to(addr, port)
	defer unix.Close(fd)
	if err := unix.Connect(fd, at); err != unix.ECONNREFUSED {
		return fmt.Errorf("connect to %+v, where nothing serves: %v", at, err)
	}
	return nil
}

// ownPorts serves at every address that means this machine alone, and is found at those that mean it.
func ownPorts() error {
	fours, sixes := []unix.Sockaddr{loop4, any4, mapped4, mappedAny}, []unix.Sockaddr{loop6, any6}
	for _, c := range []struct {
		name  string
		at    unix.Sockaddr
		only6 bool
		found []unix.Sockaddr
		lost  []unix.Sockaddr
	}{
		{"127.0.0.1", loop4, false, append(sixes, fours...), nil},
		{"every address", any4, false, append(sixes, fours...), nil},
		{"every address of both families", any6, false, append(sixes, fours...), nil},
		{"127.0.0.1, mapped", mapped4, false, fours, nil},
		{"::1", loop6, false, sixes, fours},
		{"every address of IPv6", any6, true, sixes, fours},
	} {
		server, port, err := servesAt(c.at, 0, c.only6)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, addr := range c.found {
			if err := dials(server, addr, port); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		for _, addr := range c.lost {
			if err := refuses(addr, port); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if _, _, err := servesAt(c.at, port, c.only6); !errors.Is(err, unix.EADDRINUSE) {
			return fmt.Errorf("%s: a second server: %v", c.name, err)
		}
		if err := dials(server, c.at, port); err != nil {
			return fmt.Errorf("%s, after a second server: %w", c.name, err)
		}
		unix.Close(server)
		if err := refuses(c.at, port); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if server, _, err = servesAt(c.at, port, c.only6); err == nil {
			name, _ := unix.Getsockname(server)
			err = errors.Join(dials(server, c.at, port), dials(server, name, port))
		}
		if err != nil {
			return fmt.Errorf("%s, once more: %w", c.name, err)
		}
		unix.Close(server)
	}
	return errors.Join(bothLocalhosts(), manyPorts(), childDials(), oddPorts())
}

// bothLocalhosts: a server of "localhost" takes one port at both of its addresses.
func bothLocalhosts() error {
	four, port, err := servesAt(loop4, 0, false)
	if err != nil {
		return err
	}
	six, _, err := servesAt(loop6, port, false)
	if err != nil {
		return err
	}
	return errors.Join(dials(four, loop4, port), dials(six, loop6, port), unix.Close(four), dials(six, loop6, port), unix.Close(six))
}

// manyPorts: a server stays within reach when many others have come and gone.
func manyPorts() error {
	server, port, err := servesAt(loop4, 0, false)
	if err != nil {
		return err
	}
	for range 3 * portRoom {
		fd, _, err := servesAt(loop4, 0, false)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	for range 2 * socketRoom { // sockets that are never bound
		unix.Close(tcp(unix.AF_INET))
	}
	return dials(server, loop4, port)
}

// childDials has a child connect.
func childDials() error {
	server, port, err := servesAt(loop4, 0, false)
	if err != nil {
		return err
	}
	if out, err := exec.Command("/proc/self/exe", "portdial", strconv.Itoa(port)).CombinedOutput(); err != nil {
		return fmt.Errorf("the child: %s %w", out, err)
	}
	got, _, err := unix.Accept4(server, unix.SOCK_CLOEXEC)
	unix.Close(got)
	return err
}

// oddPorts are calls in another order, and what changes nothing.
func oddPorts() error {
	bound, at := to(loop4, 0)
	if err := unix.Bind(bound, at); err != nil {
		return err
	}
	if err := errors.Join(refuses(loop4, portOf(bound)), unix.SetsockoptInt(bound, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)); err != nil {
		return fmt.Errorf("bound: %w", err)
	}
	if on, err := unix.GetsockoptInt(bound, unix.SOL_SOCKET, unix.SO_REUSEPORT); on != 0 || err != nil {
		return fmt.Errorf("UNEXPECTED: the port can be shared: %d, %v", on, err)
	}
	if err := unix.Bind(bound, at); err != unix.EINVAL {
		return fmt.Errorf("bound twice: %v", err)
	}
	if err := errors.Join(unix.Listen(bound, 1), unix.Listen(bound, 8), dials(bound, loop4, portOf(bound))); err != nil {
		return fmt.Errorf("bound, then listening: %w", err)
	}
	late, _ := to(loop4, 0)
	if err := errors.Join(unix.SetsockoptInt(late, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1), unix.Bind(late, at)); err != nil {
		return err
	}
	if err := unix.Listen(late, 1); err != unix.EINVAL {
		return fmt.Errorf("a port that is chosen later: %v", err)
	}
	from, _ := to(loop4, 0)
	if err := errors.Join(unix.Bind(from, at), unix.Connect(from, &unix.SockaddrInet4{Addr: loop4.Addr, Port: portOf(bound)})); err != nil {
		return fmt.Errorf("a client with an address of its own: %w", err)
	}
	return listensOnce(bound)
}

// listensOnce: a server that is shut down does not serve again, whatever listen(2) says. The harness, which connects without namespaces, counts on that.
func listensOnce(server int) error {
	port := portOf(server)
	if err := errors.Join(unix.Shutdown(server, unix.SHUT_RDWR), unix.Listen(server, 8)); err != nil {
		return fmt.Errorf("shut down, then listening: %w", err)
	}
	if listens, err := unix.GetsockoptInt(server, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); listens != 0 || err != nil {
		return fmt.Errorf("UNEXPECTED: what was shut down listens: %d, %v", listens, err)
	}
	return refuses(loop4, port)
}

// hostServers reaches for servers of the host's at two ports, one of 127.0.0.1 and one of every address, which can be shared by SO_REUSEPORT; and for
// the place of the second.
func hostServers(local, every int) error {
	for _, port := range []int{local, every} {
		for _, addr := range []unix.Sockaddr{loop4, any4, mapped4, mappedAny, loop6, any6, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 2}}, &unix.SockaddrInet6{Addr: [16]byte{12: 127, 15: 1}}} {
			fd, at := to(addr, port)
			if err := unix.Connect(fd, at); err != unix.ECONNREFUSED && err != unix.EACCES {
				return fmt.Errorf("UNEXPECTED: connect to %+v: %v", at, err)
			}
			unix.Close(fd)
		}
	}
	for _, addr := range []unix.Sockaddr{loop4, any4, mapped4, loop6, any6} {
		for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
			fd, at := to(addr, every)
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1)
			if err := unix.Bind(fd, at); err != unix.EADDRINUSE {
				return fmt.Errorf("UNEXPECTED: bind %+v: %v", at, err)
			}
			unix.Close(fd)
		}
	}
	for _, addr := range []unix.Sockaddr{&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 2}}, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}}, &unix.SockaddrInet4{Addr: [4]byte{224, 0, 0, 1}}, &unix.SockaddrInet6{Addr: [16]byte{0xfe, 0x80, 15: 1}}} {
		fd, at := to(addr, 0)
		if err := unix.Bind(fd, at); err != unix.EACCES {
			return fmt.Errorf("UNEXPECTED: bind %+v: %v", at, err)
		}
	}
	unbound, _ := to(any4, 0)
	if err := unix.Listen(unbound, 1); err != unix.EACCES {
		return fmt.Errorf("UNEXPECTED: listens without a port: %v", err)
	}
	return nil
}

// takesOver serves at a port again and again, while threads connect to it without an end: the host wants the port, too.
func takesOver(port int) error {
	var stop atomic.Bool
	done := make(chan struct{})
	for range 2 {
		go func() {
			for !stop.Load() {
				fd, at := to(loop4, port)
				unix.SetNonblock(fd, true)
				unix.Connect(fd, at)
				unix.Close(fd)
			}
			done <- struct{}{}
		}()
	}
	served := 0
	for i := 0; i < tries/10 || served == 0 && i < 100*tries; i++ {
		fd, at := to(loop4, port)
		if unix.Bind(fd, at) == nil {
			if i%2 == 0 {
				twin, _ := to(loop4, port)
				unix.Bind(twin, at)
				unix.Close(twin)
			}
			if unix.Listen(fd, 8) == nil {
				served++
			}
		}
		unix.Close(fd)
	}
	stop.Store(true)
	<-done
	<-done
	if served == 0 {
		return errors.New("nothing was served: the race was not run")
	}
	return nil
}
