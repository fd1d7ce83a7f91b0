package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// backlog is how many connections the kernel keeps until the harness takes them;
// it caps it at net.core.somaxconn.
const backlog = 4096

// loopback brings lo up, in the network namespace that init was cloned into, or has
// the stage make one beside init's other steps, which takes the kernel a while.
func (c *compiler) loopback(a plan.Loopback) error {
	c.inNet = c.t.header.InitClone&unix.CLONE_NEWNET != 0
	if a.Here {
		c.loopbackUp()
		return nil
	}
	if !c.inNet {
		return errors.New("there is no network namespace of its own, whose lo it would be")
	}
	c.t.header.InitClone &^= unix.CLONE_NEWNET
	c.t.header.Flags |= wire.FlagNet
	if a.Apart {
		c.t.header.Flags |= wire.FlagNetApart
	}
	c.call(wire.OpJoinNet)
	if a.Free && c.settings {
		group := fmt.Sprint(a.Group)
		c.netSetting("ip_unprivileged_port_start", "0")
		c.netSetting("ping_group_range", group+" "+group)
		c.close(regSettings)
		c.last().Ignore[0] = uint16(unix.EBADF)
	}
	return nil
}

// netSetting writes to a file below the /proc/sys that Proc has kept open. Whose settings net/ipv4 has, the kernel decides
// when it looks that directory up (proc_sys_lookup in fs/proc/proc_sysctl.c): here init has joined the network namespace.
// A descriptor of net/ipv4 from before would be of the harness's network, and as root write the machine's
// settings. Where they cannot be written, the tool has less.
func (c *compiler) netSetting(name, value string) {
	c.save(unix.SYS_OPENAT, regNew, reg(regSettings), c.str("net/ipv4/"+name), imm(unix.O_WRONLY|unix.O_CLOEXEC))
	c.last().Ignore, c.last().Skip = [3]uint16{uint16(unix.EBADF), uint16(unix.ENOENT), uint16(unix.EACCES)}, 2
	c.call(unix.SYS_WRITE, reg(regNew), c.str(value), imm(len(value)))
	c.last().Ignore = [3]uint16{uint16(unix.EINVAL), uint16(unix.EACCES), uint16(unix.EPERM)}
	c.close(regNew)
}

// loopbackUp sets IFF_UP on lo; the kernel then gives it 127.0.0.1/8 and ::1
// (netdevice(7)).
func (c *compiler) loopbackUp() {
	type ifreq struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	r := ifreq{flags: unix.IFF_UP | unix.IFF_RUNNING}
	copy(r.name[:], "lo")
	c.save(unix.SYS_SOCKET, wire.RegFree, imm(unix.AF_INET), imm(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), imm(0))
	c.call(unix.SYS_IOCTL, reg(wire.RegFree), imm(unix.SIOCSIFFLAGS), structure(c, r))
	c.close(wire.RegFree)
}

// takeSlot refuses what two descriptors would have to share.
func (c *compiler) takeSlot(slot int) error {
	if slot < 0 || slot >= plan.MaxSlots {
		return fmt.Errorf("slot %d: there are %d", slot, plan.MaxSlots)
	}
	if c.slots[slot] {
		return fmt.Errorf("slot %d is taken", slot)
	}
	if c.process != wire.InInit {
		return errors.New("only init passes descriptors up")
	}
	c.slots[slot] = true
	return nil
}

// pass sends the descriptor in a register to the harness and closes it here.
func (c *compiler) pass(register, slot int) {
	c.call(wire.OpPass, reg(register), imm(slot|int(c.step)<<16))
	c.close(register)
}

var errNotInside = errors.New("init is not in a network namespace of its own yet: it would be the host's network")

func (c *compiler) listenAtPort(a plan.Listen) error {
	if !c.inNet {
		return errNotInside
	}
	ip := a.Addr.Addr()
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	switch {
	case a.Network == "tcp4" && ip.Is4():
	case a.Network == "udp4" && ip.Is4():
		kind = unix.SOCK_DGRAM
	case a.Network == "tcp6" && ip.Is6() && !ip.Is4In6() && ip.Zone() == "":
		family = unix.AF_INET6
	default:
		return fmt.Errorf("%s is no address of %q", ip, a.Network)
	}
	c.socket(family, kind)
	if family == unix.AF_INET6 { // the same port of IPv4 is another listener's
		c.call(unix.SYS_SETSOCKOPT, reg(regSocket), imm(unix.IPPROTO_IPV6), imm(unix.IPV6_V6ONLY), structure(c, int32(1)), imm(4))
	}
	name := sockaddr(a)
	c.call(unix.SYS_BIND, reg(regSocket), c.data(name), imm(len(name)))
	c.serve(a, kind)
	return nil
}

func (c *compiler) socket(family, kind int) {
	c.save(unix.SYS_SOCKET, regSocket, imm(family), imm(kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), imm(0))
}

// serve makes a bound socket a listener and passes it up.
func (c *compiler) serve(a plan.Listen, kind int) {
	if kind == unix.SOCK_STREAM {
		c.call(unix.SYS_LISTEN, reg(regSocket), imm(backlog))
	}
	c.pass(regSocket, a.Slot)
}

// sockaddr is struct sockaddr_in or sockaddr_in6 (ip(7), ipv6(7)).
func sockaddr(a plan.Listen) []byte {
	ip := a.Addr.Addr()
	b := make([]byte, unix.SizeofSockaddrInet4)
	if ip.Is6() {
		b = make([]byte, unix.SizeofSockaddrInet6)
		binary.NativeEndian.PutUint16(b, unix.AF_INET6)
		copy(b[8:], ip.AsSlice())
	} else {
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		copy(b[4:], ip.AsSlice())
	}
	binary.BigEndian.PutUint16(b[2:], a.Addr.Port())
	return b
}

// listenAtPath binds by the last name of the path, from its directory, which is
// found as every place of the new root is: what is bound lies there even if the
// tree holds links, and the path may be longer than the 108 bytes of unix(7). Its clients can send no descriptors along (EPERM): the harness,
// which reads bytes alone, would be the last to close them, and for a socket with SO_LINGER wait (see awaitAgents in package runner).
func (c *compiler) listenAtPath(a plan.Listen) error {
	dir, name := path.Split(path.Clean("/" + a.Path))
	const most = 107
	switch {
	case name == "" || len(name) > most || strings.ContainsRune(a.Path, 0):
		return fmt.Errorf("%q cannot be a socket's path", a.Path)
	case !c.rooted:
		return errors.New("there is no new root yet")
	case c.onHost(a.Path):
		return errOnHost
	}
	b := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	b = append(append(b, name...), 0)
	c.find(wire.MakeDir, path.Clean(dir), 0o755, 0o755, false)
	c.call(unix.SYS_FCHDIR, reg(regDest))
	c.close(regDest)
	c.socket(unix.AF_UNIX, unix.SOCK_STREAM)
	c.call(unix.SYS_SETSOCKOPT, reg(regSocket), imm(unix.SOL_SOCKET), imm(unix.SO_PASSRIGHTS), structure(c, int32(0)), imm(4))
	c.last().Ignore[0] = uint16(unix.ENOPROTOOPT)       // before Linux 6.16
	c.save(unix.SYS_UMASK, regDest, imm(^a.Mode&0o777)) // the name has its mode from the start
	c.call(unix.SYS_BIND, reg(regSocket), c.data(b), imm(len(b)))
	c.call(unix.SYS_UMASK, reg(regDest))
	c.serve(a, unix.SOCK_STREAM)
	c.call(unix.SYS_CHDIR, c.str("/"))
	return nil
}
