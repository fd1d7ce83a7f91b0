package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "sockets", socketActs)

// socketless lists the walls in which no socket can be made, as long as no name is protected: see TestKernelAttackTheHostsLocalSockets.
var socketless = []string{noNamespaces}

// socketActs reach for the network and for local servers. The servers run in
// the test, which answers each client with one byte.
var socketActs = []act{
	{name: "serve and connect on loopback inside", works: true, tame: true, unheld: socketless, try: meetInside("tcp", "127.0.0.1:0")},
	{name: "serve and connect on IPv6 loopback inside", works: true, unheld: socketless, try: meetInside("tcp", "[::1]:0")},
	{name: "serve and connect on a local socket inside", works: true, tame: true, unheld: socketless, try: func(f ground) error {
		if err := os.Chdir(f.write); err != nil { // an address holds 107 bytes
			return err
		}
		return meetInside("unix", "inside.sock")(f)
	}},
	{name: "serve and connect on an abstract socket inside", works: true, tame: true, unheld: socketless, try: meetInside("unix", fmt.Sprintf("@holdfast-inside-%d", os.Getpid()))},
	{name: "serve and connect on a socket of packets inside", works: true, tame: true, unheld: socketless, try: meetInside("unixpacket", fmt.Sprintf("@holdfast-packets-%d", os.Getpid()))},
	{name: "ask for the interfaces", works: true, tame: true, unheld: socketless, try: func(ground) error {
		list, err := net.Interfaces()
		if err == nil && len(list) == 0 {
			err = errors.New("there is none")
		}
		return err
	}},
	{name: "pass a descriptor to oneself", works: true, tame: true, try: func(ground) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendmsg(fds[0], []byte("x"), unix.UnixRights(0), nil, 0)
	}},
	{name: "connect to the harness's TCP server", tame: true, try: reach("tcp", "ATTACK_TCP")},
	{name: "connect to the harness's IPv6 TCP server", tame: true, lacks: []error{unix.ECONNREFUSED, unix.EADDRNOTAVAIL}, try: reach("tcp", "ATTACK_TCP6")},
	{name: "connect to the harness's UDP server", tame: true, try: reach("udp", "ATTACK_UDP")},
	{name: "connect to an abstract socket", tame: true, try: reach("unix", "ATTACK_ABSTRACT")},
	{name: "send to an abstract datagram socket", tame: true, try: reach("unixgram", "ATTACK_ABSTRACT_DGRAM")},
	{name: "connect to a local socket that is not granted", tame: true, try: reach("unix", "ATTACK_CLOSED")},
	{name: "send to a local datagram socket that is not granted", tame: true, try: reach("unixgram", "ATTACK_CLOSED_DGRAM")},
	{name: "reconnect a pair to a local datagram socket that is not granted", tame: true, try: reconnectPair("ATTACK_CLOSED_DGRAM", unix.SOCK_DGRAM)},
	{name: "reconnect a raw pair to a local datagram socket that is not granted", tame: true, try: reconnectPair("ATTACK_CLOSED_DGRAM", unix.SOCK_RAW)},
	{name: "reconnect a pair to a local stream socket", never: "a pair of stream sockets is connected (EISCONN)", try: reconnectPair("ATTACK_CLOSED", unix.SOCK_STREAM)},
	{name: "reconnect a pair to an abstract datagram socket", tame: true, try: reconnectPair("ATTACK_ABSTRACT_DGRAM", unix.SOCK_DGRAM)},
	{name: "send into the internet", never: "it would leave the machine; the harness's UDP server is the same act", try: func(ground) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_RECVERR, 1)
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
		if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}}); err != nil {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 1)) // where all is captured, sending succeeds
		return err
	}},
	{name: "a raw socket", bare: true, try: makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
	{name: "a raw IPv6 socket", bare: true, try: makes(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
	{name: "a ping socket", unheld: namespaced, lacks: []error{unix.EACCES}, try: makes(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
	{name: "a packet socket", bare: true, try: makes(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{name: "a vsock", tame: true, try: makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{name: "a crypto socket", unheld: []string{noProfile}, try: makes(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	{name: "an MPTCP socket", unheld: []string{noProfile}, try: makes(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
	{name: "an SCTP socket", unheld: []string{noProfile}, try: makes(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)},
	{name: "a Bluetooth socket", unheld: []string{noProfile}, try: makes(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1)},
	{name: "netlink to the audit system", unheld: []string{noProfile}, try: makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)},
	{name: "netlink to the device manager", unheld: []string{noProfile}, try: makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
	{name: "netlink to the firewall", unheld: []string{noProfile}, try: makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)},
	{name: "netlink to the socket lister", unheld: []string{noProfile}, try: makes(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)},
	{name: "a pair of another family", never: "the kernel has pairs of AF_UNIX alone (EOPNOTSUPP)", try: func(ground) error { _, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0); return err }},
	{name: "join the harness's network namespace", bare: true, try: func(f ground) error { return joinNamespace(fmt.Sprintf("/proc/%d/ns/net", f.harness))(f) }},
}

// meetInside serves and connects within the tool.
func meetInside(network, address string) func(ground) error {
	return func(ground) error {
		l, err := net.Listen(network, address)
		if err != nil {
			return shortNet(err)
		}
		defer l.Close()
		go func() {
			if c, err := l.Accept(); err == nil {
				c.Write([]byte("x"))
				c.Close()
			}
		}()
		c, err := net.Dial(network, l.Addr().String())
		if err != nil {
			return shortNet(err)
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
}

// reach speaks to the server of the test that a variable names.
func reach(network, variable string) func(ground) error {
	return func(f ground) error {
		address := os.Getenv(variable)
		if network == "unixgram" {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: address})
		}
		return hear(network, address)
	}
}

// hear says one byte to a server and hears one.
func hear(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Minute)
	if err != nil {
		return shortNet(err)
	}
	defer c.Close()
	if c.LocalAddr().String() == c.RemoteAddr().String() {
		return unix.ECONNREFUSED // the kernel chose the server's port for this socket, which heard itself: 1 of 28,000, where the network is the run's
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte("x")); err != nil {
		return shortNet(err)
	}
	_, err = c.Read(make([]byte, 1))
	return shortNet(err)
}

// serveEcho gives each client of a server its first byte back.
func serveEcho(t *testing.T, l net.Listener) {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // some say nothing
				io.Copy(c, io.LimitReader(c, 1))
				c.Close()
			}()
		}
	}()
}

// reconnectPair connects one end of a pair to somebody else: unix(7) allows it
// for datagrams.
func reconnectPair(variable string, kind int) func(ground) error {
	return func(ground) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err != nil {
			return fmt.Errorf("socketpair: %w", err)
		}
		to := &unix.SockaddrUnix{Name: os.Getenv(variable)}
		if unix.Sendto(fds[0], []byte("x"), 0, to) == nil && kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET { // which send to their peer
			return nil
		}
		if err := unix.Connect(fds[0], to); err != nil {
			return err
		}
		_, err = unix.Write(fds[0], []byte("x"))
		return err
	}
}

func makes(family, kind, protocol int) func(ground) error {
	return func(ground) error {
		_, err := unix.Socket(family, kind, protocol)
		return err
	}
}

func shortNet(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// serveHost starts the servers that the tool must not reach and names them in
// the environment.
func serveHost(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short: an address holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, s := range [][3]string{
		{"ATTACK_TCP", "tcp", "127.0.0.1:0"}, {"ATTACK_TCP6", "tcp", "[::1]:0"}, {"ATTACK_ABSTRACT", "unix", fmt.Sprintf("@holdfast-attack-%d", os.Getpid())},
		{"ATTACK_CLOSED", "unix", filepath.Join(dir, "stream.sock")},
	} {
		l, err := net.Listen(s[1], s[2])
		if err != nil {
			if s[0] == "ATTACK_TCP6" {
				t.Setenv(s[0], "[::1]:1")
				continue // a host without IPv6
			}
			t.Fatal(err)
		}
		t.Setenv(s[0], l.Addr().String())
		serveEcho(t, l)
	}
	for _, s := range [][3]string{
		{"ATTACK_UDP", "udp", "127.0.0.1:0"}, {"ATTACK_ABSTRACT_DGRAM", "unixgram", fmt.Sprintf("@holdfast-attack-d-%d", os.Getpid())},
		{"ATTACK_CLOSED_DGRAM", "unixgram", filepath.Join(dir, "dgram.sock")},
	} {
		l, err := net.ListenPacket(s[1], s[2])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		t.Setenv(s[0], l.LocalAddr().String())
		go func() {
			buf := make([]byte, 1)
			for {
				_, from, err := l.ReadFrom(buf)
				if err != nil {
					return
				}
				l.WriteTo(buf, from)
			}
		}()
	}
}

func TestKernelAttackSockets(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		serveHost(t)
		attackPlainly(t, "sockets")
		attackWith(t, "sockets", w, nil)
	})
}

// With the harness's network shared, local sockets are still the sandbox's own:
// Landlock's scope keeps abstract ones out, the missing path the others.
func TestKernelAttackLocalSocketsWithASharedNetwork(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		serveHost(t)
		attackPlainly(t, "shared network")
		attackWith(t, "shared network", w, func(base string, p *Policy) { p.Network.Host = true })
	})
}

var _ = offer(attacks, "shared network", []act{
	{name: "connect to the harness's TCP server", works: true, try: reach("tcp", "ATTACK_TCP")},
	{name: "connect to an abstract socket", tame: true, try: reach("unix", "ATTACK_ABSTRACT")},
	{name: "send to an abstract datagram socket", tame: true, try: reach("unixgram", "ATTACK_ABSTRACT_DGRAM")},
	{name: "reconnect a pair to an abstract datagram socket", tame: true, try: reconnectPair("ATTACK_ABSTRACT_DGRAM", unix.SOCK_DGRAM)},
	{name: "connect to a local socket that is not granted", tame: true, try: reach("unix", "ATTACK_CLOSED")},
	{name: "send to a local datagram socket that is not granted", tame: true, try: reach("unixgram", "ATTACK_CLOSED_DGRAM")},
	{name: "a vsock", tame: true, try: makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{name: "a packet socket", bare: true, try: makes(unix.AF_PACKET, unix.SOCK_RAW, 0)},
})
