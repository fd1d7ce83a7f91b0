package sandbox

import (
	"net"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// TestKernelNothingButConnectConnects: under the rules that stand in for a network
// namespace, each other way to a connection fails, and one made by connect(2) works.
// Without them Fast Open does connect, so there is something to refuse.
func TestKernelNothingButConnectConnects(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasSeccompFilter)
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			to := &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
			stream := func() int {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				return fd
			}
			if err := unix.Sendto(stream(), []byte("x"), unix.MSG_FASTOPEN, to); err != nil {
				t.Logf("this kernel has no Fast Open: %v", err)
			}
			arch, err := seccomp.Native()
			if err != nil {
				t.Fatal(err)
			}
			program, err := seccomp.Filter{Default: seccomp.Allow, Unknown: seccomp.Errno(uint16(unix.ENOSYS))}.With(compile.Streams(true)...).Compile(arch)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := program.Load(seccomp.LoadOptions{ThreadOnly: true}); err != nil {
				t.Fatal(err)
			}
			socket := func(family, kind, protocol int) error {
				fd, err := unix.Socket(family, kind, protocol)
				if err == nil {
					unix.Close(fd)
				}
				return err
			}
			for _, c := range []struct {
				name string
				err  error
				want error
			}{
				{"Fast Open", unix.Sendto(stream(), []byte("x"), unix.MSG_FASTOPEN, to), unix.EACCES},
				{"Fast Open in a message", unix.Sendmsg(stream(), []byte("x"), nil, to, unix.MSG_FASTOPEN), unix.EACCES},
				{"an address without it", unix.Sendto(stream(), []byte("x"), unix.MSG_NOSIGNAL, to), unix.EPIPE},
				{"Multipath TCP", socket(unix.AF_INET, unix.SOCK_STREAM, 262), unix.EACCES},
				{"UDP", socket(unix.AF_INET, unix.SOCK_DGRAM, 0), unix.EACCES},
				{"a local datagram socket", socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0), unix.EACCES},
				{"netlink to list sockets", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG), unix.EACCES},
				{"netlink to IPsec", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_XFRM), unix.EACCES},
				{"connect", unix.Connect(stream(), to), nil},
			} {
				if c.err != c.want {
					t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
				}
			}
		})
	})
}
