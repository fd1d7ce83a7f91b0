package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// ownNetwork gives a host addresses of every kind that end at its own servers: of an
// interface, of a prefix on the loopback device, and by routes of type local. Beyond v0
// there are others. The kernel makes the route of an IPv6 address later, in a worker (addrconf_dad_start).
const ownNetwork = `
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip addr add 10.9.9.9/24 dev v0
ip -6 addr add fd12:3456::9/64 dev v0 nodad
ip addr add 8.8.9.1/24 dev lo
ip route add local 34.1.2.3/32 dev v0 proto 66
ip -6 route add local 2600:1900::/64 dev lo
ip route add default via 10.9.9.1
until ip -6 route show table local | grep -q fd12:3456::9; do :; done
`

// TestKernelOwnAddressesAreThoseThatTheKernelDeliversHere, also those that no interface
// lists.
func TestKernelOwnAddressesAreThoseThatTheKernelDeliversHere(t *testing.T) {
	if os.Getenv(inNamespaces) != "" {
		ownRoutes(t)
		ownConnections(t)
		ownDatagrams(t)
		return
	}
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.Command("ip"))
			flags := uintptr(syscall.CLONE_NEWNET)
			if as != kerneltest.Root {
				flags |= syscall.CLONE_NEWUSER
			}
			again(t, flags, ownNetwork)
		})
	})
}

func ownRoutes(t *testing.T) {
	anycast(t, "fd12:3456::77", "v0")
	for a, want := range map[string]hostrules.Route{
		"10.9.9.9": hostrules.RouteLocal, "fd12:3456::9": hostrules.RouteLocal, "::ffff:10.9.9.9": hostrules.RouteLocal, "127.0.0.1": hostrules.RouteLocal, "::1": hostrules.RouteLocal,
		"8.8.9.1": hostrules.RouteLocal, "8.8.9.77": hostrules.RouteLocal, "34.1.2.3": hostrules.RouteLocal, "2600:1900::5": hostrules.RouteLocal, "fd12:3456::77": hostrules.RouteLocal,
		"10.9.9.255": hostrules.RouteShared, "8.8.9.255": hostrules.RouteShared, "224.0.0.251": hostrules.RouteShared, "255.255.255.255": hostrules.RouteShared, "ff02::fb": hostrules.RouteShared,
		"10.9.9.10": hostrules.RouteRemote, "8.8.8.8": hostrules.RouteRemote, "34.1.2.4": hostrules.RouteRemote, "fd12:3456::10": hostrules.RouteRemote, "2600:1901::5": hostrules.RouteRemote,
	} {
		if got := hostrules.RouteOf(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s: route %d, want %d", a, got, want)
		}
	}
}

// anycast has an address delivered here as one of many hosts' (ipv6(7)).
func anycast(t *testing.T, addr, device string) {
	t.Helper()
	i, err := net.InterfaceByName(device)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	m := &unix.IPv6Mreq{Multiaddr: netip.MustParseAddr(addr).As16(), Interface: uint32(i.Index)}
	if err := unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_ANYCAST, m); err != nil {
		t.Fatal(err)
	}
}

// echoAt answers datagrams at an address of the host.
func echoAt(t *testing.T, addr string) (port uint16) {
	t.Helper()
	p, err := net.ListenPacket("udp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			p.WriteTo(b[:n], from)
		}
	}()
	return p.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

var ownCases = []struct {
	name   string
	allow  string
	addr   string
	opened bool
}{
	{"an entry of a private range does not open an interface's address", "10.0.0.0/8", "10.9.9.9", false},
	{"nor a narrow one", "10.9.9.0/24", "10.9.9.9", false},
	{"nor one of IPv6", "fd00::/8", "fd12:3456::9", false},
	{"* does not open an address of a prefix on lo", "*", "8.8.9.1", false},
	{"nor one of it that no interface lists", "*", "8.8.9.77", false},
	{"nor a load balancer's address", "*", "34.1.2.3", false},
	{"nor an address of a local prefix of IPv6", "*", "2600:1900::5", false},
	{"nor does an entry of a public range", "8.8.9.0/24", "8.8.9.77", false},
	{"an entry of the one address opens it", "10.9.9.9", "10.9.9.9", true},
	{"and one of IPv6", "fd12:3456::9", "fd12:3456::9", true},
	{"and one that no interface lists", "8.8.9.77", "8.8.9.77", true},
	{"loopback is opened by its range", "127.0.0.0/8", "127.0.0.1", true},
}

func listenAnywhere(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func ownConnections(t *testing.T) {
	l := listenAnywhere(t)
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	for _, c := range ownCases {
		for _, host := range []string{c.addr, "rebound.example"} {
			g, err := New(Config{
				Network: policy.Network{
					Hosts: strings.Fields(c.allow + " rebound.example"),
					Lookup: func(context.Context, string) ([]netip.Addr, error) {
						return []netip.Addr{netip.MustParseAddr(c.addr)}, nil
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			u, err := g.openTunnel(t.Context(), Target{Host: mustHost(t, host), Port: port, Protocol: "tcp"})
			if (err == nil) != c.opened || !c.opened && refusalOf(err) == nil {
				t.Errorf("%s: %s to %s: %v", c.name, c.allow, host, err)
			}
			if u != nil {
				u.Close()
			}
			g.Close()
		}
	}
}

func ownDatagrams(t *testing.T) {
	cases := append(ownCases, ownCases[0])
	cases[len(ownCases)].name, cases[len(ownCases)].addr = "the broadcast address of a range is not opened", "10.9.9.255"
	for _, c := range cases {
		port := uint16(9)
		if c.opened {
			port = echoAt(t, c.addr)
		}
		for _, host := range []string{c.addr, "rebound.example"} {
			g, err := New(Config{
				Network: policy.Network{
					UDP: []string{udpEntry(c.allow), "rebound.example:1-65535"},
					Lookup: func(context.Context, string) ([]netip.Addr, error) {
						return []netip.Addr{netip.MustParseAddr(c.addr)}, nil
					},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			tool, gate := net.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- g.CarryUDP(t.Context(), gate, Target{Host: mustHost(t, host), Port: port, Protocol: "udp"})
			}()
			tool.SetDeadline(time.Now().Add(time.Minute))
			_, err = tool.Write([]byte("hello"))
			if err == nil {
				_, err = tool.Read(make([]byte, 100))
			}
			tool.Close()
			why := <-ended
			if (err == nil) != c.opened || !c.opened && refusalOf(why) == nil {
				t.Errorf("%s: %s to %s: %v, %v", c.name, c.allow, host, err, why)
			}
			g.Close()
		}
	}
}

func udpEntry(entry string) string {
	if strings.Contains(entry, "::") {
		return "[" + entry + "]:1-65535"
	}
	return entry + ":1-65535"
}

// TestKernelAnAddressIsClosedWhereTheKernelIsNotAsked, unless an entry names it alone.
func TestKernelAnAddressIsClosedWhereTheKernelIsNotAsked(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{}); err != nil {
				t.Fatal(err)
			}
			if _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE); !errors.Is(err, unix.EMFILE) {
				t.Fatalf("the kernel can be asked: %v", err)
			}
			for _, a := range []string{"10.9.9.9", "fd12::1", "93.184.216.34"} {
				if got := hostrules.RouteOf(netip.MustParseAddr(a)); got != hostrules.RouteUnknown {
					t.Errorf("%s: route %d", a, got)
				}
			}
		})
	})
}
