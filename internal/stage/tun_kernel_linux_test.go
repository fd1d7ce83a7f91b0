package stage

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"golang.org/x/sys/unix"
)

// hasTUN is the fact that this user can open the device.
var hasTUN = kerneltest.Fact{Name: host.TUNPath, Check: func() error {
	f, err := os.OpenFile(host.TUNPath, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}}

// eachUserWithTUN runs body as root and as a user without privileges, who gets the
// device with its usual mode, in mounts of the test's own, if root runs the test.
func eachUserWithTUN(t *testing.T, body func(t *testing.T)) {
	t.Run("as root", func(t *testing.T) {
		kerneltest.Root.Wanted(t)
		kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasMountSetattr, hasTUN)
			body(t)
		})
	})
	t.Run("as an ordinary user", func(t *testing.T) {
		kerneltest.Ordinary.Wanted(t)
		kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			if os.Geteuid() == 0 {
				kerneltest.Need(t, hasTUN)
				becomeNobody(t)
			}
			kerneltest.Need(t, hasTUN)
			body(t)
		})
	})
}

// becomeNobody gives root's privileges up, in a mount namespace whose TUN device
// everybody may open. It holds for the thread that the test is locked to.
func becomeNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	toolFile = "/dev/net/tool"
	steps := []struct {
		name string
		err  error
	}{
		{"unshare", unix.Unshare(unix.CLONE_NEWNS)},
		{"private mounts", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")},
		{"a tmpfs", unix.Mount("tmpfs", "/dev/net", "tmpfs", 0, "mode=0755")},
		{"the device", unix.Mknod(host.TUNPath, unix.S_IFCHR|0o666, 10<<8|200)},
		{"its mode", os.Chmod(host.TUNPath, 0o666)},
		{"a place for the tool", os.WriteFile(toolFile, nil, 0o600)},
		{"the tool, whose directory is closed to others", unix.Mount(exe, toolFile, "", unix.MS_BIND, "")},
		{"groups", unix.Setgroups(nil)},
		{"the group", unix.Setresgid(nobody, nobody, nobody)},
		{"the user", unix.Setresuid(nobody, nobody, nobody)},
		{"dumpable", unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)},
	}
	for _, s := range steps {
		if s.err != nil {
			t.Fatalf("%s: %v", s.name, s.err)
		}
	}
}

func someTun(slot int) plan.Tun {
	return plan.Tun{Name: "out0", Addr: netip.MustParsePrefix("198.18.0.1/30"), Addr6: netip.MustParsePrefix("fd00:5a5a::1/126"), MTU: 9000, Slot: slot}
}

// TestKernelEveryPacketComesToTheHarness: what the tool sends to any address at
// all can be read at the other end, and what is written there arrives.
func TestKernelEveryPacketComesToTheHarness(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	eachUserWithTUN(t, func(t *testing.T) {
		i := begin(t, walls([]plan.Action{someTun(4)}, nil), "talk", "udp4", "203.0.113.7:53").held()
		tun := i.c.Received(4)
		if tun == nil {
			t.Fatal("nothing has come up")
		}
		defer tun.Close()
		p := nextPacket(t, tun, 4)
		src, dst := netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
		if src.String() != "198.18.0.1" || dst.String() != "203.0.113.7" || p[9] != unix.IPPROTO_UDP || !strings.HasSuffix(string(p), "ping") {
			t.Errorf("%v to %v, %x", src, dst, p)
		}
		if _, err := tun.Write(reply(p, "pong")); err != nil {
			t.Fatal(err)
		}
		if got := i.end(); got != "pong" {
			t.Errorf("%q", got)
		}
	})
}

// TestKernelPacketsOfIPv6ComeToTheHarnessToo where there is IPv6.
func TestKernelPacketsOfIPv6ComeToTheHarnessToo(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	ipv6 := kerneltest.Fact{Name: "IPv6", Check: func() error {
		l, err := net.Listen("tcp6", "[::1]:0")
		if err == nil {
			l.Close()
		}
		return err
	}}
	eachUserWithTUN(t, func(t *testing.T) {
		kerneltest.Need(t, ipv6)
		i := begin(t, walls([]plan.Action{someTun(0)}, nil), "send", "udp6", "[2001:db8::7]:53").held()
		tun := i.c.Received(0)
		defer tun.Close()
		for {
			p := nextPacket(t, tun, 6)
			if p[6] != unix.IPPROTO_UDP { // the kernel looks for routers
				continue
			}
			src, dst := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
			if src.String() != "fd00:5a5a::1" || dst.String() != "2001:db8::7" {
				t.Errorf("%v to %v", src, dst)
			}
			break
		}
		if got := i.end(); got != "sent" {
			t.Errorf("%q", got)
		}
	})
}

// TestKernelATUNDeviceIsAsThePlanSays, and the tool can do nothing to it.
func TestKernelATUNDeviceIsAsThePlanSays(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	eachUserWithTUN(t, func(t *testing.T) {
		for _, mtu := range []int{9000, 0} {
			a := someTun(0)
			a.MTU = mtu
			i := begin(t, walls([]plan.Action{a}, nil), "device", "out0").held()
			defer i.c.Received(0).Close()
			want := map[int]int{9000: 9000, 0: 1500}[mtu]
			if got := i.end(); got != fmt.Sprintf("mtu %d, taking it down: operation not permitted", want) {
				t.Errorf("%q", got)
			}
		}
	})
}

// TestKernelATUNDeviceThatCannotBeMadeStopsTheRun with the step's name.
func TestKernelATUNDeviceThatCannotBeMadeStopsTheRun(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	multicast := someTun(0)
	multicast.Addr6 = netip.MustParsePrefix("ff02::1/64")
	eachUserWithTUN(t, func(t *testing.T) {
		for _, c := range []struct {
			actions []plan.Action
			errno   unix.Errno
		}{
			{[]plan.Action{someTun(0), someTun(1)}, unix.EBUSY},
			{[]plan.Action{multicast}, unix.EADDRNOTAVAIL},
		} {
			i := begin(t, walls(c.actions, nil), "files")
			if i.c.Started || i.c.Failed == nil || i.c.Failed.Errno != c.errno || !strings.HasPrefix(i.failed(), "make the device out0") {
				t.Errorf("started %v, %q: %+v", i.c.Started, i.failed(), i.c.Failed)
			}
			if out := i.end(); out != "" {
				t.Errorf("the tool ran: %s", out)
			}
		}
	})
	eachUser(t, func(t *testing.T) {
		i := begin(t, walls(nil, []plan.Action{someTun(0)}), "files") // the new root has no such device
		if i.c.Started || i.c.Failed == nil || i.c.Failed.Errno != unix.ENOENT {
			t.Errorf("started %v, %q: %+v", i.c.Started, i.failed(), i.c.Failed)
		}
	})
}

// TestKernelTheProbeTriesATUNDevice, and says no where the file may not be opened.
func TestKernelTheProbeTriesATUNDevice(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	eachUserWithTUN(t, func(t *testing.T) {
		if f := TryTUN(Try(host.Read())); !f.TUN.Yes() {
			t.Errorf("%+v", f.TUN)
		}
	})
	t.Run("without namespaces", func(t *testing.T) {
		kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary, Without: []kerneltest.Feature{kerneltest.UserNamespaces}}, func(t *testing.T) {
			if f := TryTUN(Try(host.Read())); f.TUN.Answer != host.No || f.TUN.Remedy == "" {
				t.Errorf("%+v", f.TUN)
			}
		})
	})
	eachUser(t, func(t *testing.T) {
		f := TryTUN(Try(host.Read()))
		if want := hasTUN.Check() == nil; f.TUN.Yes() != want || !want && (f.TUN.Answer != host.No || f.TUN.Remedy == "") {
			t.Errorf("%+v", f.TUN)
		}
	})
}

func TestATUNDeviceThatCannotBeIsNotCompiled(t *testing.T) {
	change := func(f func(a *plan.Tun)) plan.Tun { a := someTun(0); f(&a); return a }
	tests := []struct {
		name string
		a    plan.Tun
		ok   bool
	}{
		{"a sound one", someTun(0), true},
		{"without IPv6", change(func(a *plan.Tun) { a.Addr6 = netip.Prefix{} }), true},
		{"without a name", change(func(a *plan.Tun) { a.Name = "" }), false},
		{"with a name that is too long", change(func(a *plan.Tun) { a.Name = strings.Repeat("x", 16) }), false},
		{"with a name that the kernel completes", change(func(a *plan.Tun) { a.Name = "tun%d" }), false},
		{"without an address", change(func(a *plan.Tun) { a.Addr = netip.Prefix{} }), false},
		{"with the addresses the wrong way round", change(func(a *plan.Tun) { a.Addr, a.Addr6 = a.Addr6, a.Addr }), false},
		{"with an MTU too small for IPv6", change(func(a *plan.Tun) { a.MTU = 1000 }), false},
		{"with an MTU too large", change(func(a *plan.Tun) { a.MTU = 65536 }), false},
		{"with an MTU below zero", change(func(a *plan.Tun) { a.MTU = -1 }), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Namespaces: plan.Namespaces{Net: true}, Steps: []plan.Step{{In: plan.Init, Do: plan.Loopback{}}, {In: plan.Init, Do: test.a}}}
			if _, err := Compile(p, Identity{}); (err == nil) != test.ok {
				t.Error(err)
			}
			p.Namespaces.Net, p.Steps = false, p.Steps[1:]
			if _, err := Compile(p, Identity{}); err == nil {
				t.Error("a device in the host's network")
			}
		})
	}
}

// nextPacket reads until a packet of an IP version comes.
func nextPacket(t *testing.T, tun *os.File, version byte) []byte {
	t.Helper()
	for {
		b := make([]byte, 65536)
		n, err := tun.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if n > 40 && b[0]>>4 == version || n > 20 && version == 4 && b[0]>>4 == 4 {
			return b[:n]
		}
	}
}

// reply makes the answer to a datagram of IPv4, without a checksum of UDP.
func reply(p []byte, text string) []byte {
	const ip, udp = 20, 8
	b := make([]byte, ip+udp, 64)
	b = append(b, text...)
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:16], p[16:20])
	copy(b[16:20], p[12:16])
	copy(b[ip:ip+2], p[ip+2:ip+4])
	copy(b[ip+2:ip+4], p[ip:ip+2])
	binary.BigEndian.PutUint16(b[ip+4:], uint16(len(b)-ip))
	sum := uint32(0)
	for i := 0; i < ip; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
	return b
}

func init() {
	moreTools["send"] = func(args []string) error {
		c, err := net.Dial(args[0], args[1])
		if err == nil {
			_, err = io.WriteString(c, "ping")
		}
		if err == nil {
			fmt.Print("sent")
		}
		return err
	}
	moreTools["device"] = func(args []string) error {
		d, err := net.InterfaceByName(args[0])
		if err != nil {
			return err
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		r, err := unix.NewIfreq(args[0])
		if err != nil {
			return err
		}
		fmt.Printf("mtu %d, taking it down: %v", d.MTU, unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r))
		return nil
	}
}
