package stage

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

const leastMTU, leastMTU6, mostMTU = 68, 1280, 65535 // RFC 791, RFC 8200; tun.c, MAX_MTU

// ifreq is struct ifreq of netdevice(7): a name and what goes with it.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data [24]byte
}

func checkTun(a plan.Tun) error {
	four, six := a.Addr, a.Addr6
	switch {
	case a.Name == "" || len(a.Name) >= unix.IFNAMSIZ || strings.ContainsAny(a.Name, "/:% \t\n\x00") || a.Name == "." || a.Name == "..":
		return fmt.Errorf("%q cannot be a device's name", a.Name)
	case !four.IsValid() || !four.Addr().Is4():
		return fmt.Errorf("%s is no address of IPv4 with the length of its network", four)
	case six.IsValid() && (!six.Addr().Is6() || six.Addr().Is4In6()):
		return fmt.Errorf("%s is no address of IPv6 with the length of its network", six)
	case a.MTU != 0 && (a.MTU < leastMTU || a.MTU > mostMTU), six.IsValid() && a.MTU != 0 && a.MTU < leastMTU6:
		return fmt.Errorf("an MTU of %d", a.MTU)
	}
	return nil
}

// tun makes the device. The device file hands out devices of the network namespace
// in which it was opened (tun_chr_open), so it is opened when init is there; a new
// device wants CAP_NET_ADMIN over that (tun_set_iff), which init has until it drops
// its capabilities. The rest is netdevice(7) and rtnetlink's older calls.
func (c *compiler) tun(a plan.Tun) error {
	if !c.inNet {
		return errNotInside
	}
	if err := checkTun(a); err != nil {
		return err
	}
	request := func(data []byte) arg {
		r := ifreq{}
		copy(r.name[:], a.Name)
		copy(r.data[:], data)
		return structure(c, r)
	}
	four := func(ip netip.Addr) arg { return request(sockaddr(plan.Listen{Addr: netip.AddrPortFrom(ip, 0)})) }
	mask, _ := netip.AddrFromSlice(net.CIDRMask(a.Addr.Bits(), 32))

	c.openTun()
	c.call(unix.SYS_IOCTL, reg(regTun), imm(unix.TUNSETIFF), request(short(unix.IFF_TUN|unix.IFF_NO_PI)))
	c.persist()
	c.socket(unix.AF_INET, unix.SOCK_DGRAM)
	set := func(what int, with arg) { c.call(unix.SYS_IOCTL, reg(regSocket), imm(what), with) }
	set(unix.SIOCSIFADDR, four(a.Addr.Addr()))
	set(unix.SIOCSIFNETMASK, four(mask))
	if a.MTU != 0 {
		set(unix.SIOCSIFMTU, request(binary.NativeEndian.AppendUint32(nil, uint32(a.MTU))))
	}
	set(unix.SIOCSIFFLAGS, request(short(unix.IFF_UP|unix.IFF_RUNNING)))
	route := c.defaultRoute(a.Name)
	set(unix.SIOCADDRT, route)
	if a.Addr6.IsValid() {
		r := ifreq{}
		copy(r.name[:], a.Name)
		index := c.data(bytesOf(&r)) // the kernel writes there
		set(unix.SIOCGIFINDEX, index)
		c.close(regSocket)
		c.tun6(a, ptr(index.v+unix.IFNAMSIZ))
	} else {
		c.close(regSocket)
	}
	c.pass(regTun, a.Slot)
	return nil
}

func short(n int) []byte { return binary.NativeEndian.AppendUint16(nil, uint16(n)) }

func (c *compiler) openTun() {
	c.save(unix.SYS_OPENAT, regTun, imm(atCwd), c.str(host.TUNPath), imm(unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC))
}

// persist leaves the device to the network namespace's end, which the kernel comes
// to when no process waits. Otherwise the process that closes the descriptor would wait for the
// device's end: some 40 ms.
func (c *compiler) persist() {
	c.call(unix.SYS_IOCTL, reg(regTun), imm(unix.TUNSETPERSIST), imm(1))
}

// defaultRoute is struct rtentry (linux/route.h): to 0.0.0.0/0 through a device.
func (c *compiler) defaultRoute(device string) arg {
	type rtentry struct {
		_     uint64
		dst   [16]byte // struct sockaddr
		_     [16]byte // the gateway
		net   [16]byte
		flags uint16
		_     [3]uint64
		_     uint64 // a pointer to the device's name
		_     [3]uint64
	}
	r := rtentry{flags: unix.RTF_UP}
	for _, to := range []*[16]byte{&r.dst, &r.net} {
		binary.NativeEndian.PutUint16(to[:], unix.AF_INET)
	}
	at := c.data(bytesOf(&r))
	const device64 = 88
	c.call(wire.OpStore64, ptr(at.v+device64), c.str(device))
	return at
}

// tun6 gives the device its address of IPv6 and the default route. The address comes
// by rtnetlink(7), which alone can say that no other host has it (IFA_F_NODAD): else the
// kernel finds that out in its own time, and meanwhile takes ::1 for what the tool
// sends. An address is refused with EACCES where IPv6 is disabled (inet6_rtm_newaddr),
// and with EOPNOTSUPP where the kernel has none.
func (c *compiler) tun6(a plan.Tun, index arg) {
	type newAddress struct {
		header    unix.NlMsghdr
		message   unix.IfAddrmsg
		attribute unix.RtAttr
		addr      [16]byte
	}
	type in6Rtmsg struct {
		_      [3][16]byte // to, from, by
		_      uint32      // type
		_      [2]uint16   // the lengths of the prefixes
		metric uint32
		_      uint64
		flags  uint32
		_      int32 // the device's index
	}
	const room, errorAt, messageIndex, routeIndex = 256, 16, 20, 76
	address := newAddress{
		header:    unix.NlMsghdr{Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL},
		message:   unix.IfAddrmsg{Family: unix.AF_INET6, Prefixlen: uint8(a.Addr6.Bits()), Flags: unix.IFA_F_NODAD | unix.IFA_F_PERMANENT},
		attribute: unix.RtAttr{Type: unix.IFA_ADDRESS, Len: unix.SizeofRtAttr + 16},
		addr:      a.Addr6.Addr().As16(),
	}
	address.header.Len = uint32(unsafe.Sizeof(address))
	route := in6Rtmsg{flags: unix.RTF_UP, metric: 1}
	at, to, answer := c.data(bytesOf(&address)), c.data(bytesOf(&route)), c.data(make([]byte, room))
	c.save(wire.OpLoad32, regSocket, index)
	c.call(wire.OpStore32, ptr(at.v+messageIndex), reg(regSocket))
	c.call(wire.OpStore32, ptr(to.v+routeIndex), reg(regSocket))

	c.socket(unix.AF_NETLINK, unix.SOCK_RAW) // protocol 0 is NETLINK_ROUTE
	c.call(unix.SYS_SENDTO, reg(regSocket), at, imm(int(address.header.Len)), imm(0), imm(0), imm(0))
	c.call(unix.SYS_RECVFROM, reg(regSocket), answer, imm(room), imm(0), imm(0), imm(0)) // it was written before sendto returned
	c.close(regSocket)
	c.call(wire.OpErrno, ptr(answer.v+errorAt))
	c.last().Ignore, c.last().Skip = [3]uint16{uint16(unix.EACCES), uint16(unix.EOPNOTSUPP)}, 3
	c.socket(unix.AF_INET6, unix.SOCK_DGRAM)
	c.call(unix.SYS_IOCTL, reg(regSocket), imm(unix.SIOCADDRT), to)
	c.close(regSocket)
}

// probeTun makes a device that goes with the probe.
func (c *compiler) probeTun() {
	c.openTun()
	c.last().Probe = checkTunOpen + 1
	r := ifreq{}
	copy(r.name[:], "probe")
	copy(r.data[:], short(unix.IFF_TUN|unix.IFF_NO_PI))
	c.call(unix.SYS_IOCTL, reg(regTun), imm(unix.TUNSETIFF), structure(c, r)).Probe = checkTunMake + 1
	c.persist()
	c.last().Probe = probeIgnored + 1
}
