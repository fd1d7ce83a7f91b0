package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"golang.org/x/sys/unix"
)

// A network by name gives a tool the proxies and nothing else: what reaches for
// other servers directly finds no way, whichever socket it makes.

var _ = offer(attacks, "network", []act{
	{name: "connect to the HTTP proxy", works: true, try: func(ground) error { return connectTo(proxyOf("http_proxy")) }},
	{name: "connect to the SOCKS proxy", works: true, try: func(ground) error { return connectTo(proxyOf(runner.SOCKSVariable)) }},
	{name: "connect to the harness's TCP server", tame: true, try: reach("tcp", "ATTACK_TCP")},
	{name: "connect to the harness's TCP server by IPv6", tame: true, lacks: []error{unix.ECONNREFUSED, unix.EADDRNOTAVAIL}, try: reach("tcp", "ATTACK_TCP6")},
	{name: "connect to the harness's TCP server by a mapped address", tame: true, lacks: []error{unix.ENETUNREACH}, try: mapped},
	{name: "connect by sending (Fast Open)", tame: true, try: fastOpen},
	{name: "connect by an option, later (Fast Open)", tame: true, lacks: []error{unix.ENOPROTOOPT}, try: fastOpenConnect},
	{name: "send a datagram to the harness's server", tame: true, try: reach("udp", "ATTACK_UDP")},
	{name: "connect by MPTCP", tame: true, lacks: []error{unix.ENOPROTOOPT}, try: func(ground) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
		if err != nil {
			return err
		}
		return unix.Connect(fd, inet(os.Getenv("ATTACK_TCP")))
	}},
	{name: "make a ring, which makes sockets", tame: true, unheld: []string{noProfile}, lacks: []error{unix.EPERM}, try: func(ground) error {
		var params [120]byte
		return rawCall(unix.SYS_IO_URING_SETUP, 1, addressOf(&params))
	}},
	{name: "a raw socket", bare: true, try: makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{name: "a ping socket", unheld: namespaced, lacks: []error{unix.EACCES}, try: makes(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
	{name: "a packet socket", bare: true, try: makes(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{name: "a vsock", tame: true, try: makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{name: "netlink to the firewall", tame: true, unheld: []string{noProfile}, try: makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)},
	{name: "connect to an abstract socket", tame: true, try: reach("unix", "ATTACK_ABSTRACT")},
	{name: "connect to a local socket that is not granted", tame: true, try: reach("unix", "ATTACK_CLOSED")},
	{name: "send to a local datagram socket that is not granted", tame: true, try: reach("unixgram", "ATTACK_CLOSED_DGRAM")},
	{name: "reconnect a pair to a local datagram socket", tame: true, try: reconnectPair("ATTACK_CLOSED_DGRAM", unix.SOCK_DGRAM)},
	{name: "disconnect a socket of the proxy and connect it elsewhere", tame: true, try: reconnect},
	{name: "swap the address while it is looked at", tame: true, try: swapAddress},
	{name: "join the harness's network namespace", bare: true, try: func(f ground) error { return joinNamespace(fmt.Sprintf("/proc/%d/ns/net", f.harness))(f) }},
})

func connectTo(address string) error {
	c, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return shortNet(err)
	}
	return c.Close()
}

// proxyOf is the address that the environment names; without walls there is none,
// and the test's server stands in.
func proxyOf(variable string) string {
	if u, err := url.Parse(os.Getenv(variable)); err == nil && u.Host != "" {
		return u.Host
	}
	return os.Getenv("ATTACK_TCP")
}

// addressOf is where p points to, for a system call. What it points to stays there.
func addressOf[T any](p *T) uintptr {
	pinned = p
	return uintptr(unsafe.Pointer(p))
}

var pinned any

func inet(address string) *unix.SockaddrInet4 {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return &unix.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}
}

func mapped(ground) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet6{Port: inet(os.Getenv("ATTACK_TCP")).Port}
	copy(to.Addr[10:], []byte{0xff, 0xff, 127, 0, 0, 1})
	return unix.Connect(fd, to)
}

func stream() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) }

func fastOpen(ground) error {
	fd, err := stream()
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, inet(os.Getenv("ATTACK_TCP")))
}

func fastOpenConnect(ground) error {
	fd, err := stream()
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	if err := unix.Connect(fd, inet(os.Getenv("ATTACK_TCP"))); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("x"))
	return err
}

// reconnect takes a connection that is allowed apart and makes another of its socket.
func reconnect(ground) error {
	fd, err := stream()
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, inet(proxyOf("http_proxy"))); err != nil {
		return err
	}
	var unspecified [16]byte
	rawCall(unix.SYS_CONNECT, uintptr(fd), addressOf(&unspecified), 16)
	return unix.Connect(fd, inet(os.Getenv("ATTACK_TCP")))
}

// swapAddress lets another thread write the port anew while connect reads it.
func swapAddress(ground) error {
	good, bad := inet(proxyOf("http_proxy")).Port, inet(os.Getenv("ATTACK_TCP")).Port
	address := new([16]byte)
	*address = [16]byte{unix.AF_INET, 0, 0, 0, 127, 0, 0, 1}
	put := func(port int) { address[2], address[3] = byte(port>>8), byte(port) }
	stop, begun := make(chan struct{}), make(chan struct{})
	defer close(stop)
	go func() {
		put(good)
		close(begun)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				put([]int{good, bad}[i&1])
			}
		}
	}()
	<-begun // with every processor busy that may be after the last try
	for range 300 {
		fd, err := stream()
		if err != nil {
			return err
		}
		if rawCall(unix.SYS_CONNECT, uintptr(fd), addressOf(address), 16) == nil {
			if peer, err := unix.Getpeername(fd); err == nil && peer.(*unix.SockaddrInet4).Port == bad {
				return nil
			}
		}
		unix.Close(fd)
	}
	return errors.New("it never connected elsewhere")
}

func TestKernelAttackNetwork(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		serveHost(t)
		attackPlainly(t, "network")
		attackWith(t, "network", w, func(base string, p *Policy) {
			p.Network.Hosts = []string{"allowed.example"}
		})
	})
}
