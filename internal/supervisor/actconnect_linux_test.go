package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inet4 is a struct sockaddr_in, inet6 a struct sockaddr_in6.
func inet4(a, b, c, d byte, port int) []byte {
	s := make([]byte, 16)
	binary.NativeEndian.PutUint16(s, unix.AF_INET)
	binary.BigEndian.PutUint16(s[2:], uint16(port))
	copy(s[4:], []byte{a, b, c, d})
	return s
}

func inet6(addr [16]byte, port int) []byte {
	s := make([]byte, 28)
	binary.NativeEndian.PutUint16(s, unix.AF_INET6)
	binary.BigEndian.PutUint16(s[2:], uint16(port))
	copy(s[8:], addr[:])
	return s
}

func mapped(port int) []byte {
	return inet6([16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}, port)
}

// rawConnect connects with a length that need not be the address's.
func rawConnect(fd int, addr []byte, size uint64) error {
	if _, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(size)); e != 0 {
		return e
	}
	return nil
}

func tcp(family int) int { return sock(family, unix.SOCK_STREAM) }

func sock(family, kind int) int {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		die("socket", err)
	}
	return fd
}

func port(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		die("port", err)
	}
	return n
}

// manyConnects tries every way to connect that is one call: good is an allowed port of 127.0.0.1, bad is not. In
// both somebody listens.
func manyConnects(good, bad int) error {
	file, err := os.Open("/dev/null")
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	v4, v6 := unix.AF_INET, unix.AF_INET6
	ok, no := inet4(127, 0, 0, 1, good), inet4(127, 0, 0, 1, bad)
	long := append(inet4(127, 0, 0, 1, good), make([]byte, 112)...)
	scoped := mapped(good)
	scoped[4], scoped[24] = 7, 7
	unixPath := append([]byte{unix.AF_UNIX, 0}, "/tmp/nobody\x00"...)
	connected := tcp(v4)
	if err := rawConnect(connected, ok, 16); err != nil {
		return fmt.Errorf("the first: %w", err)
	}
	cases := []struct {
		name string
		fd   int
		addr []byte
		size uint64
		want error
	}{
		{"the allowed address", tcp(v4), ok, 16, nil},
		{"the allowed address in more bytes than it needs", tcp(v4), long, 128, nil},
		{"the allowed address from a socket of IPv6", tcp(v6), mapped(good), 28, nil},
		{"the same in the old length", tcp(v6), mapped(good), 24, nil},
		{"the same with a flow and a scope", tcp(v6), scoped, 28, nil},
		{"another port", tcp(v4), no, 16, unix.ECONNREFUSED},
		{"another port from a socket of IPv6", tcp(v6), mapped(bad), 28, unix.ECONNREFUSED},
		{"another address of the loopback network", tcp(v4), inet4(127, 0, 0, 2, good), 16, unix.EACCES},
		{"any address, which is loopback", tcp(v4), inet4(0, 0, 0, 0, good), 16, unix.ECONNREFUSED},
		{"any address of IPv6", tcp(v6), inet6([16]byte{}, good), 28, unix.ECONNREFUSED},
		{"an address elsewhere", tcp(v4), inet4(192, 0, 2, 1, good), 16, unix.EACCES},
		{"the loopback address of IPv6", tcp(v6), inet6([16]byte{15: 1}, good), 28, unix.ECONNREFUSED},
		{"an IPv4-compatible address", tcp(v6), inet6([16]byte{12: 127, 15: 1}, good), 28, unix.EACCES},
		{"an address that is nearly mapped", tcp(v6), inet6([16]byte{9: 1, 10: 0xff, 11: 0xff, 12: 127, 15: 1}, good), 28, unix.EACCES},
		{"an address that is half mapped", tcp(v6), inet6([16]byte{11: 0xff, 12: 127, 15: 1}, good), 28, unix.EACCES},
		{"an address translated by NAT64", tcp(v6), inet6([16]byte{0, 0x64, 0xff, 0x9b, 12: 127, 15: 1}, good), 28, unix.EACCES},
		{"no family, which would disconnect", connected, make([]byte, 16), 16, unix.EACCES},
		{"a family of two bytes that is one of one", tcp(v4), append([]byte{unix.AF_INET, 1}, ok[2:]...), 16, unix.EACCES},
		{"a path", sock(unix.AF_UNIX, unix.SOCK_STREAM), unixPath, uint64(len(unixPath)), unix.ENOENT},
		{"an abstract name", sock(unix.AF_UNIX, unix.SOCK_STREAM), []byte{unix.AF_UNIX, 0, 0, 'x'}, 4, unix.ECONNREFUSED},
		{"the allowed address from a socket of UDP", sock(v4, unix.SOCK_DGRAM), ok, 16, unix.EACCES},
		{"the allowed address from a pair of local sockets", pair[0], ok, 16, unix.EACCES},
		{"the allowed address from a file", int(file.Fd()), ok, 16, unix.ENOTSOCK},
		{"the allowed address from nothing", 900, ok, 16, unix.EBADF},
		{"the allowed address once more", connected, ok, 16, unix.EISCONN},
		{"no address at all", tcp(v4), nil, 16, unix.EFAULT},
		{"an address that is too short", tcp(v4), ok, 15, unix.EINVAL},
		{"an address of IPv6 that is too short", tcp(v6), mapped(good), 23, unix.EINVAL},
		{"an address without a family", tcp(v4), ok, 1, unix.EINVAL},
		{"an empty address", tcp(v4), ok, 0, unix.EINVAL},
		{"an address that is too long", tcp(v4), long, 129, unix.EINVAL},
		{"a length below zero", tcp(v4), ok, 1<<32 - 1, unix.EINVAL},
	}
	for _, c := range cases {
		if err := rawConnect(c.fd, c.addr, c.size); !errors.Is(err, c.want) {
			return fmt.Errorf("UNEXPECTED: %s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := unix.Getpeername(connected); err != nil {
		return fmt.Errorf("UNEXPECTED: disconnected: %w", err)
	}
	return options(ok)
}

// options sets what leads a connection past its address, or the supervisor into a wait.
func options(ok []byte) error {
	fd := tcp(unix.AF_INET)
	value := []byte{131, 7, 4, 192, 0, 2, 1, 0} // a loose source route by 192.0.2.1 (RFC 791)
	for _, c := range []struct {
		name        string
		level, what uint64
		want        error
	}{
		{"a source route", 0, 4, unix.EPERM},
		{"a source route, with a bit that the kernel does not look at", 1 << 40, 1<<33 | 4, unix.EPERM},
		{"to be connected later", 6, 30, unix.EOPNOTSUPP},
	} {
		_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(c.level), uintptr(c.what), uintptr(unsafe.Pointer(&value[0])), 8, 0)
		if e != c.want {
			return fmt.Errorf("UNEXPECTED: %s: %v", c.name, e)
		}
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 7}); err != nil {
		return err
	}
	if tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err != nil || tv.Sec != 0 {
		return fmt.Errorf("UNEXPECTED: the time to send is %v, %v", tv, err)
	}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1000}); err != nil {
		return err
	}
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER); err != nil || on != 0 {
		return fmt.Errorf("UNEXPECTED: it lingers: %v, %v", on, err)
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	unix.SetNonblock(fd, true)
	if err := rawConnect(fd, ok, 16); err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("a socket that does not block: %w", err)
	}
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for {
		if n, err := unix.Poll(p, -1); err != unix.EINTR {
			if e, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); e != 0 || n != 1 {
				return fmt.Errorf("a socket that does not block: %v", unix.Errno(e))
			}
			break
		}
	}
	if tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err != nil || tv.Sec != 0 || tv.Usec != 0 {
		return fmt.Errorf("UNEXPECTED: a time to send is left: %v, %v", tv, err)
	}
	return nil
}

// flipConnect changes the address and its family while the supervisor looks at them.
func flipConnect(good, bad int) error {
	addr := inet4(127, 0, 0, 1, good)
	words := (*[4]uint32)(unsafe.Pointer(&addr[0]))
	ok, no := words[0], binary.NativeEndian.Uint32(inet4(127, 0, 0, 1, bad))
	unspec := ok &^ 0xffff
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			for _, w := range []uint32{no, unspec, ok} {
				atomic.StoreUint32(&words[0], w)
			}
		}
	}()
	connected := 0
	for i := 0; i < tries/4 || connected == 0 && i < 100*tries; i++ { // on a busy machine the other thread can stand still for many tries
		fd := tcp(unix.AF_INET)
		if rawConnect(fd, addr, 16) == nil {
			connected++
			if to, err := unix.Getpeername(fd); err == nil && to.(*unix.SockaddrInet4).Port != good {
				return errors.New("UNEXPECTED: connected to another port")
			}
		}
		unix.Close(fd)
	}
	stop.Store(true)
	if connected == 0 {
		return errors.New("nothing was connected: the race was not run")
	}
	return nil
}

// flipDescriptor puts another socket in the descriptor's place while the supervisor looks at it: whichever it takes,
// nothing but TCP's is connected, and to nothing but the allowed address.
func flipDescriptor(good int) error {
	ok := inet4(127, 0, 0, 1, good)
	slot := tcp(unix.AF_INET)
	var stream, other atomic.Int64
	var stop atomic.Bool
	stream.Store(int64(slot))
	other.Store(int64(slot))
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		for !stop.Load() {
			unix.Dup3(int(stream.Load()), slot, unix.O_CLOEXEC)
			unix.Dup3(int(other.Load()), slot, unix.O_CLOEXEC)
		}
	}()
	connected, refused := 0, 0
	for i := 0; i < tries/4 || (connected == 0 || refused == 0) && i < 100*tries; i++ {
		a, b := tcp(unix.AF_INET), sock([]int{unix.AF_INET, unix.AF_INET6}[i%2], unix.SOCK_DGRAM)
		stream.Store(int64(a))
		other.Store(int64(b))
		switch err := rawConnect(slot, ok, 16); err {
		case nil:
			connected++
		case unix.EACCES:
			refused++
		}
		if to, err := unix.Getpeername(a); err == nil && to.(*unix.SockaddrInet4).Port != good {
			return errors.New("UNEXPECTED: connected to another port")
		}
		if _, err := unix.Getpeername(b); err == nil {
			return errors.New("UNEXPECTED: a socket of another kind was connected")
		}
		unix.Close(a)
		unix.Close(b)
	}
	stop.Store(true)
	<-done
	if connected == 0 || refused == 0 {
		return fmt.Errorf("%d connected and %d refused: the race was not run", connected, refused)
	}
	return nil
}

// aside runs f on a thread of its own, which ends then, and is not the process's first.
func aside(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- aside(f)
			return
		}
		done <- f()
	}()
	return <-done
}

// ownTable connects in a thread that shares its descriptors with nobody: of the two sockets of one number it means its own.
func ownTable(good int) error {
	if fd, err := unix.PidfdOpen(unix.Gettid(), unix.O_EXCL); err != nil {
		return nil // a kernel before 6.9 has no descriptors of threads
	} else {
		unix.Close(fd)
	}
	slot := tcp(unix.AF_INET)
	if err := aside(func() error {
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			return err
		}
		own := tcp(unix.AF_INET)
		err := unix.Dup3(own, slot, unix.O_CLOEXEC)
		if err == nil {
			err = rawConnect(slot, inet4(127, 0, 0, 1, good), 16)
		}
		if err == nil {
			_, err = unix.Getpeername(own)
		}
		return err
	}); err != nil {
		return fmt.Errorf("UNEXPECTED: the thread's own socket: %w", err)
	}
	if _, err := unix.Getpeername(slot); err == nil {
		return errors.New("UNEXPECTED: the other threads' socket was connected")
	}
	return nil
}

// fullQueue connects to a listener that takes nobody more, with a socket that blocks, while other threads undo what
// could keep the supervisor from waiting; then it needs the supervisor for something else.
func fullQueue(at int) error {
	addr := inet4(127, 0, 0, 1, at)
	for range 4 { // who fills the queue
		fd := sock(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		if err := rawConnect(fd, addr, 16); err != nil && err != unix.EINPROGRESS {
			return err
		}
	}
	fd := tcp(unix.AF_INET)
	var stop atomic.Bool
	for range 2 {
		go func() {
			for !stop.Load() {
				unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{})
				unix.SetNonblock(fd, false)
			}
		}()
	}
	done := make(chan error)
	go func() { done <- rawConnect(fd, addr, 16) }()
	if err := os.Mkdir("made meanwhile", 0o755); err != nil {
		return err
	}
	err := <-done
	stop.Store(true)
	if err != unix.ETIMEDOUT {
		return fmt.Errorf("UNEXPECTED: %v", err)
	}
	return nil
}
