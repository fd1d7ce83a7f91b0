package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// Each way to another machine, or to the harness's own servers, that is not the
// proxies', with a network by name: every kind of socket, every call that gives a
// destination, and what is no socket at all. What a socket of a proxy can be made
// to do is in network_attack_linux_test.go.

// namespaced are the walls with a network namespace, where what stays inside harms
// nobody.
var namespaced = []string{allWalls, noLandlock, noUserNS, noProfile, noOwnProc}

var _ = offer(attacks, "direct", []act{
	{name: "use a socket that the harness left open", tame: true, try: leftOpen}, // before there are others
	{name: "connect without waiting", tame: true, try: func(ground) error { return connectLater(inet(os.Getenv("ATTACK_TCP"))) }},
	{name: "connect to the address that is none", tame: true, try: func(ground) error {
		return connectLater(&unix.SockaddrInet4{Port: inet(os.Getenv("ATTACK_TCP")).Port})
	}},
	{name: "connect in a child that shares the socket", tame: true, try: connectInChild},
	{name: "connect by a ring's socket", tame: true, lacks: []error{unix.EPERM}, try: ringConnect(unix.AF_INET)},
	{name: "make a vsock by a ring", tame: true, unheld: []string{noProfile}, lacks: []error{unix.EPERM}, try: func(ground) error { _, err := ringSocket(unix.AF_VSOCK); return err }},
	{name: "connect by Fast Open in a message", tame: true, try: func(ground) error {
		fd, err := stream()
		if err != nil {
			return err
		}
		return unix.Sendmsg(fd, []byte("x"), nil, inet(os.Getenv("ATTACK_TCP")), unix.MSG_FASTOPEN)
	}},
	{name: "connect by Fast Open in many messages", tame: true, try: func(ground) error {
		fd, err := stream()
		if err != nil {
			return err
		}
		return sendMany(fd, inet(os.Getenv("ATTACK_TCP")), unix.MSG_FASTOPEN)
	}},

	{name: "send a datagram to an address", tame: true, try: datagram(unix.AF_INET, func(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, []byte("x"), 0, to) })},
	{name: "send a datagram to a mapped address", tame: true, lacks: []error{unix.ENETUNREACH}, try: datagram(unix.AF_INET6, func(fd int, to unix.Sockaddr) error {
		six := &unix.SockaddrInet6{Port: to.(*unix.SockaddrInet4).Port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
		return unix.Sendto(fd, []byte("x"), 0, six)
	})},
	{name: "send a message to an address", tame: true, try: datagram(unix.AF_INET, func(fd int, to unix.Sockaddr) error { return unix.Sendmsg(fd, []byte("x"), nil, to, 0) })},
	{name: "send many messages to an address", tame: true, try: datagram(unix.AF_INET, func(fd int, to unix.Sockaddr) error { return sendMany(fd, to.(*unix.SockaddrInet4), 0) })},
	{name: "begin as QUIC does", tame: true, try: datagram(unix.AF_INET, func(fd int, to unix.Sockaddr) error {
		return unix.Sendto(fd, append([]byte{0xc3, 0, 0, 0, 1, 8}, make([]byte, 1194)...), 0, to)
	})},
	{name: "connect a datagram socket, disconnect it and send elsewhere", tame: true, try: datagram(unix.AF_INET, func(fd int, to unix.Sockaddr) error {
		if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		var unspecified [16]byte
		if err := rawCall(unix.SYS_CONNECT, uintptr(fd), addressOf(&unspecified), 16); err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("x"), 0, to)
	})},

	{name: "a raw IPv6 socket", bare: true, try: makes(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
	{name: "raw packets with a header of one's own", bare: true, try: makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)},
	{name: "a packet socket of the old kind", bare: true, try: makes(unix.AF_INET, unix.SOCK_PACKET, 0x300)},
	{name: "an XDP socket", bare: true, try: makes(unix.AF_XDP, unix.SOCK_RAW, 0)},
	{name: "a socket of another protocol of IP", tame: true, unheld: []string{noProfile}, lacks: []error{unix.ENOPROTOOPT}, try: anySocket(
		[3]int{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, [3]int{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, [3]int{unix.AF_INET, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP},
		[3]int{unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP}, [3]int{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, [3]int{unix.AF_INET, unix.SOCK_STREAM, 256}, // SMC
	)},
	{name: "a socket of another family", tame: true, unheld: []string{noProfile}, try: anySocket(
		[3]int{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, [3]int{unix.AF_SMC, unix.SOCK_STREAM, 0}, [3]int{unix.AF_KEY, unix.SOCK_RAW, 2})},
	{name: "a vsock", tame: true, try: anySocket([3]int{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, [3]int{unix.AF_VSOCK, unix.SOCK_DGRAM, 0}, [3]int{unix.AF_VSOCK, unix.SOCK_SEQPACKET, 0})},
	{name: "netlink to anything but routes", tame: true, unheld: []string{noProfile}, try: anySocket([3]int{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC},
		[3]int{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, [3]int{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM}, [3]int{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT})},
	{name: "connect a sequence of packets to a local socket", never: "a pair of such sockets is connected (EISCONN)", try: reconnectPair("ATTACK_CLOSED", unix.SOCK_SEQPACKET)},

	{name: "give a device an address", bare: true, try: func(ground) error {
		return onNetDevice("lo:7", unix.SIOCSIFADDR, func(r *unix.Ifreq) { r.SetInet4Addr([]byte{192, 0, 2, 7}) })
	}},
	{name: "take a device down", bare: true, try: func(ground) error {
		return onNetDevice("lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) { r.SetUint16(0) })
	}},
	{name: "make a device by netlink", bare: true, try: makeDevice},
	{name: "send to another process's netlink socket", bare: true, try: sendNetlink},
	{name: "listen for the machine's multicast routes", bare: true, try: hearMulticastRoutes},
	{name: "claim a number of netlink's", tame: true, unheld: namespaced, try: claimNetlink},
	{name: "make a TUN device", bare: true, lacks: []error{unix.ENODEV, unix.ENXIO}, try: func(ground) error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		r, err := unix.NewIfreq("attack0")
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}},
	{name: "bind a socket to a device", tame: true, unheld: namespaced, try: option(unix.SOL_SOCKET, unix.SO_BINDTODEVICE, []byte("lo\x00"))},
	{name: "bind a socket to a device by its number", tame: true, unheld: namespaced, try: option(unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, []byte{1, 0, 0, 0})},
	{name: "connect to the harness's loopback by a device that the harness reads", never: "there is one in a captured sandbox alone, whose harness takes no packet for a loopback address from it", try: byDevice},
	{name: "mark a socket's packets", bare: true, try: option(unix.SOL_SOCKET, unix.SO_MARK, []byte{1, 0, 0, 0})},
	{name: "speak as another address", bare: true, try: option(unix.SOL_IP, unix.IP_TRANSPARENT, []byte{1, 0, 0, 0})},
	{name: "route a socket's packets", bare: true, try: option(unix.SOL_IP, unix.IP_OPTIONS, []byte{131, 7, 4, 192, 0, 2, 1, 0})},
	{name: "take up a connection in its middle", bare: true, try: option(unix.SOL_TCP, unix.TCP_REPAIR, []byte{1, 0, 0, 0})},

	{name: "join the harness's network namespace by its process", bare: true, try: func(f ground) error {
		fd, err := unix.PidfdOpen(f.harness, 0)
		if err != nil {
			return err
		}
		return inAChild(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWNET)
	}},
	{name: "have the kernel ask somebody outside for a key", tame: true, try: func(ground) error {
		kind, name, said := []byte("user\x00"), []byte("holdfast-attack-none\x00"), []byte("x\x00")
		err := rawCall(unix.SYS_REQUEST_KEY, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&said[0])), 0)
		if errors.Is(err, unix.ENOENT) { // who is asked, /sbin/request-key, is not installed
			return nil
		}
		return reached(err, unix.ENOKEY)
	}},
	{name: "stop the kernel while it holds a socket", tame: true, unheld: []string{noProfile}, try: func(ground) error { return rawCall(unix.SYS_USERFAULTFD, 1) }},
})

// byDevice sends what is for its own loopback by the capture's device: the harness
// gets it, and must not take its own loopback for what is meant.
func byDevice(ground) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.BindToDevice(fd, compile.CaptureDevice.Name); err != nil {
		return err
	}
	if err := unix.Connect(fd, inet(os.Getenv("ATTACK_TCP"))); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 1500); err != nil || n == 0 {
		return errors.New("no answer")
	}
	_, err = unix.Getpeername(fd)
	return err
}

// connectLater connects with a socket that does not block.
func connectLater(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if e, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); e != 0 || err != nil {
		return errors.Join(err, unix.Errno(e))
	}
	return nil
}

// connectInChild lets a process of one thread connect the socket that both have.
func connectInChild(ground) error {
	fd, err := stream()
	if err != nil {
		return err
	}
	port := inet(os.Getenv("ATTACK_TCP")).Port
	address := &[16]byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1}
	if err := inAChild3(unix.SYS_CONNECT, uintptr(fd), addressOf(address), 16); err != nil {
		return err
	}
	_, err = unix.Getpeername(fd)
	return err
}

// datagram sends to the harness's server and waits for the answer, or for the word
// that nobody is there.
func datagram(family int, send func(fd int, to unix.Sockaddr) error) func(ground) error {
	return func(ground) error {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1)
		if family == unix.AF_INET6 {
			unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_RECVERR, 1)
		}
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
		if err := send(fd, inet(os.Getenv("ATTACK_UDP"))); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 1))
		return err
	}
}

func sendMany(fd int, to *unix.SockaddrInet4, flags uintptr) error {
	address := &[16]byte{unix.AF_INET, 0, byte(to.Port >> 8), byte(to.Port), to.Addr[0], to.Addr[1], to.Addr[2], to.Addr[3]}
	text := []byte("x")
	messages := new([1]struct {
		unix.Msghdr
		sent uint32
		_    uint32
	})
	messages[0].Name, messages[0].Namelen = &address[0], 16
	messages[0].Iov, messages[0].Iovlen = &unix.Iovec{Base: &text[0], Len: 1}, 1
	return rawCall(unix.SYS_SENDMMSG, uintptr(fd), addressOf(messages), 1, flags)
}

// anySocket answers nil if one of these sockets can be made.
func anySocket(list ...[3]int) func(ground) error {
	return func(ground) error {
		var failed []error
		for _, s := range list {
			err := makes(s[0], s[1], s[2])(ground{})
			if err == nil {
				return nil
			}
			failed = append(failed, err)
		}
		return failed[0] // of the one that most kernels have
	}
}

// onNetDevice asks for a change of a network device, by a socket that every tool has.
func onNetDevice(name string, what uint, set func(r *unix.Ifreq)) error {
	fd, err := stream()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	set(r)
	return unix.IoctlIfreq(fd, what, r)
}

func option(level, name int, value []byte) func(ground) error {
	return func(ground) error {
		fd, err := stream()
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return rawCall(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value[0])), uintptr(len(value)))
	}
}

// leftOpen looks among its descriptors for a connection to the harness's server.
func leftOpen(ground) error {
	for fd := 3; fd < 1024; fd++ {
		to, err := unix.Getpeername(fd)
		if four, ok := to.(*unix.SockaddrInet4); err != nil || !ok || four.Port != inet(os.Getenv("ATTACK_TCP")).Port {
			continue
		}
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			continue
		}
		if n, _ := unix.Read(fd, make([]byte, 1)); n == 1 {
			return nil
		}
	}
	return errors.New("none is open")
}

// leaveOpen connects to the harness's server as a careless harness does, once for
// each who may use the connection up.
func leaveOpen(t *testing.T) {
	t.Helper()
	for range 2 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			t.Cleanup(func() { unix.Close(fd) })
			err = unix.Connect(fd, inet(os.Getenv("ATTACK_TCP")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// directWalls are all sets, and what is left where neither a namespace nor a
// profile holds the network.
var directWalls = append(slices.Clone(allSets), walls{
	name: "without namespaces and without a system call profile", without: []kerneltest.Feature{kerneltest.Namespaces}, may: []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, noCalls: true,
})

func TestKernelAttackDirect(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, directWalls, func(t *testing.T, w walls) {
		serveHost(t)
		leaveOpen(t)
		attackPlainly(t, "direct")
		attackWith(t, "direct", w, func(base string, p *Policy) { p.Network.Hosts = []string{"allowed.example"} })
	})
}

// A ring makes sockets and connects them where no filter sees it.

func ringSocket(family int) (int, error) {
	return byRing(45, family, unix.SOCK_STREAM, 0) // IORING_OP_SOCKET
}

func ringConnect(family int) func(ground) error {
	return func(ground) error {
		fd, err := ringSocket(family)
		if err != nil {
			return err
		}
		port := inet(os.Getenv("ATTACK_TCP")).Port
		address := &[16]byte{byte(family), 0, byte(port >> 8), byte(port), 127, 0, 0, 1}
		_, err = byRing(16, fd, 16, uint64(addressOf(address))) // IORING_OP_CONNECT
		return err
	}
}

// byRing does one thing by a new ring and returns its result; the layout is that of
// linux/io_uring.h.
func byRing(op byte, fd int, off, address uint64) (int, error) {
	params := new([30]uint32)
	ring, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, addressOf(params), 0)
	if e != 0 {
		return -1, e
	}
	defer unix.Close(int(ring))
	const shared, both = unix.MAP_SHARED | unix.MAP_POPULATE, unix.PROT_READ | unix.PROT_WRITE
	arrayAt, tailAt, answersAt := params[10+6], params[10+1], params[20+5]
	sq, err1 := unix.Mmap(int(ring), 0, int(arrayAt+4*params[0]), both, shared)
	cq, err2 := unix.Mmap(int(ring), 0x8000000, int(answersAt+16*params[1]), both, shared)
	entries, err3 := unix.Mmap(int(ring), 0x10000000, int(64*params[0]), both, shared)
	if err := errors.Join(err1, err2, err3); err != nil {
		return -1, err
	}
	entries[0] = op
	binary.NativeEndian.PutUint32(entries[4:], uint32(fd))
	binary.NativeEndian.PutUint64(entries[8:], off)
	binary.NativeEndian.PutUint64(entries[16:], address)
	binary.NativeEndian.PutUint32(sq[tailAt:], 1)
	if err := rawCall(unix.SYS_IO_URING_ENTER, ring, 1, 1, 1, 0, 0); err != nil { // IORING_ENTER_GETEVENTS
		return -1, err
	}
	if r := int32(binary.NativeEndian.Uint32(cq[answersAt+8:])); r < 0 {
		return -1, syscall.Errno(-r)
	} else {
		return int(r), nil
	}
}
