package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

const lineName = "line0"

// ownNetwork puts the test's thread, and what is started from it, into a network namespace of its own: loopback and a
// device, whose descriptor has what is sent by it. The thread ends with the test.
func ownNetwork(t *testing.T) (line int) {
	t.Helper()
	kerneltest.Need(t, kerneltest.IsRoot)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("needs a TUN device: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	s := sock(unix.AF_INET, unix.SOCK_DGRAM)
	defer unix.Close(s)
	ask := func(fd int, what uint, name string, set func(r *unix.Ifreq)) {
		t.Helper()
		r, err := unix.NewIfreq(name)
		if err == nil {
			set(r)
			err = unix.IoctlIfreq(fd, what, r)
		}
		if err != nil {
			t.Fatalf("%s, %#x: %v", name, what, err)
		}
	}
	up := func(r *unix.Ifreq) { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING) }
	address := netip.MustParseAddr("192.0.2.5").As4()
	ask(s, unix.SIOCSIFFLAGS, "lo", up)
	ask(fd, unix.TUNSETIFF, lineName, func(r *unix.Ifreq) { r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI) })
	ask(s, unix.SIOCSIFADDR, lineName, func(r *unix.Ifreq) { r.SetInet4Addr(address[:]) })
	ask(s, unix.SIOCSIFNETMASK, lineName, func(r *unix.Ifreq) { r.SetInet4Addr([]byte{255, 255, 255, 0}) })
	ask(s, unix.SIOCSIFFLAGS, lineName, up)
	return fd
}

// sentTCP returns the packets of TCP that have left by the device.
func sentTCP(line int) (sent []string) {
	b := make([]byte, 1<<16)
	for {
		n, err := unix.Read(line, b)
		if err != nil { // EAGAIN: what has been sent was there already
			return sent
		}
		if p := b[:n]; n >= 40 && p[0]>>4 == 4 && p[9] == unix.IPPROTO_TCP {
			head := int(p[0]&15) * 4
			to, _ := netip.AddrFromSlice(p[16:20])
			sent = append(sent, fmt.Sprintf("%v:%d", to, binary.BigEndian.Uint16(p[head+2:])))
		}
	}
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// TestKernelNoOptionLeadsElsewhere sets every option that there is, and then connects to the allowed address: who
// listens there is connected to, or nobody; no packet leaves by a device. Without the supervisor some do.
func TestKernelNoOptionLeadsElsewhere(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	for user, uid := range users(t) {
		for name, silent := range map[string]bool{"": false, " without a supervisor": true} {
			t.Run(user+name, func(t *testing.T) {
				line := ownNetwork(t)
				s := serverAt(t, "127.0.0.1:0")
				dir, _ := workspace(t, uid)
				out, code := run(t, job{Rules: Rules{Connects: loopback(s.port())}, Dir: dir, UID: uid, Silent: silent,
					Argv: []string{"bash", "-ec", fmt.Sprintf(`"$SELF" options %d`, s.port())}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
				s.end()
				sent, here := sentTCP(line), fmt.Sprintf("127.0.0.1:%d", s.port())
				if !silent && len(sent) > 0 {
					t.Errorf("sent by the device: %q\n%s", sent, out)
				}
				// By each family: bound to the device by its name and by its number; and by a source route, which takes CAP_NET_RAW.
				by, routes := fmt.Sprintf("192.0.2.1:%d", s.port()), 2
				if uid != 0 {
					routes = 0
				}
				if silent && (count(sent, here) != 4 || count(sent, by) != routes) {
					t.Errorf("what can be sent without a supervisor is %q", sent)
				}
				if s.accepted.Load() < 100 {
					t.Errorf("%d connections: the options were not tried", s.accepted.Load())
				}
			})
		}
	}
}

// setEveryOption connects once for each option that can be set, with each of some values that mean a device, an address or
// a route.
func setEveryOption(good int) error {
	index, err := deviceIndex()
	if err != nil {
		return err
	}
	word := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	values := [][]byte{
		word(1), word(index), binary.BigEndian.AppendUint32(nil, index), []byte(lineName + "\x00"),
		{131, 7, 4, 192, 0, 2, 1, 0}, // a loose source route by 192.0.2.1, of the device's network
		append(make([]byte, 16), word(index)...), append([]byte{192, 0, 2, 1, 192, 0, 2, 5}, word(index)...),
	}
	set := 0
	for family, to := range map[int][]byte{unix.AF_INET: inet4(127, 0, 0, 1, good), unix.AF_INET6: mapped(good)} {
		for _, level := range []int{unix.SOL_IP, unix.SOL_SOCKET, unix.SOL_TCP, unix.SOL_IPV6} {
			for option := range 256 {
				for _, v := range values {
					fd := sock(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
					_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)), 0)
					if e == 0 {
						set++
						rawConnect(fd, to, uint64(len(to)))
					}
					unix.Close(fd)
				}
			}
		}
	}
	if set < 100 {
		return errors.New("hardly an option could be set")
	}
	return nil
}

func deviceIndex() (uint32, error) {
	s := sock(unix.AF_INET, unix.SOCK_DGRAM)
	defer unix.Close(s)
	r, err := unix.NewIfreq(lineName)
	if err == nil {
		err = unix.IoctlIfreq(s, unix.SIOCGIFINDEX, r)
	}
	return r.Uint32(), err
}
