package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is the inside of a test's namespace: what a sandbox's stage makes.

const (
	insideArg = "capture-inside"
	testMTU   = 65520
)

var (
	testNet6 = netip.MustParsePrefix("fd00:5::1/64")
)

// makeDevice makes a TUN device, gives it the tests' addresses and routes
// everything through it.
func makeDevice() (*os.File, error) {
	fd, err := unix.Open(deviceNode, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", deviceNode, err)
	}
	req, err := unix.NewIfreq("tun0")
	if err != nil {
		return nil, err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, fmt.Errorf("TUNSETIFF: %w", err)
	}
	if err := configure(); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tun0"), nil
}

func configure() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	if err := setFlags(s, "lo"); err != nil {
		return err
	}
	mtu, err := unix.NewIfreq("tun0")
	if err != nil {
		return err
	}
	mtu.SetUint32(testMTU)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFMTU, mtu); err != nil {
		return fmt.Errorf("SIOCSIFMTU: %w", err)
	}
	if err := setFlags(s, "tun0"); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFINDEX, mtu); err != nil {
		return fmt.Errorf("SIOCGIFINDEX: %w", err)
	}
	index := mtu.Uint32()
	for _, p := range []netip.Prefix{testNet, testNet6} {
		if err := addAddress(index, p); err != nil {
			return fmt.Errorf("address %v: %w", p, err)
		}
		if err := addDefaultRoute(index, p.Addr().Is6()); err != nil {
			return fmt.Errorf("default route by %v: %w", p, err)
		}
	}
	return nil
}

// awaitIPv6 returns when the device's IPv6 addresses can be sent to: the kernel
// takes them for tentative, and drops what is for them, until it has looked at the
// device's carrier, some time after the device has come up.
func awaitIPv6(order) (result, error) {
	for {
		text, err := os.ReadFile("/proc/self/net/if_inet6")
		if err != nil {
			return result{}, err
		}
		own, tentative := false, false
		for line := range strings.Lines(string(text)) {
			var addr, index, length, scope, name string
			var flags int
			if _, err := fmt.Sscanf(line, "%s %s %s %s %x %s", &addr, &index, &length, &scope, &flags, &name); err != nil {
				return result{}, err
			}
			own = own || strings.HasPrefix(addr, "fd000005")
			tentative = tentative || flags&unix.IFA_F_TENTATIVE != 0
		}
		if own && !tentative {
			return result{}, nil
		}
		time.Sleep(time.Millisecond)
	}
}

func setFlags(s int, name string) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("%s up: %w", name, err)
	}
	return nil
}

func addAddress(index uint32, p netip.Prefix) error {
	body := make([]byte, unix.SizeofIfAddrmsg)
	m := (*unix.IfAddrmsg)(unsafe.Pointer(&body[0]))
	*m = unix.IfAddrmsg{Family: family(p.Addr().Is6()), Prefixlen: uint8(p.Bits()), Flags: unix.IFA_F_NODAD, Index: index}
	body = attribute(body, unix.IFA_LOCAL, p.Addr().AsSlice())
	body = attribute(body, unix.IFA_ADDRESS, p.Addr().AsSlice())
	return netlink(unix.RTM_NEWADDR, body)
}

func addDefaultRoute(index uint32, six bool) error {
	body := make([]byte, unix.SizeofRtMsg)
	m := (*unix.RtMsg)(unsafe.Pointer(&body[0]))
	*m = unix.RtMsg{Family: family(six), Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_BOOT, Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
	return netlink(unix.RTM_NEWROUTE, attribute(body, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, index)))
}

func family(six bool) uint8 {
	if six {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

func attribute(body []byte, kind uint16, value []byte) []byte {
	body = binary.NativeEndian.AppendUint16(body, uint16(4+len(value)))
	body = binary.NativeEndian.AppendUint16(body, kind)
	return append(body, value...) // every value here is of whole words
}

// netlink sends one request and returns the kernel's answer.
func netlink(kind uint16, body []byte) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	msg := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	msg = binary.NativeEndian.AppendUint16(msg, kind)
	msg = binary.NativeEndian.AppendUint16(msg, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	msg = append(msg, make([]byte, 8)...)
	if err := unix.Sendto(s, append(msg, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil || n < 20 {
		return fmt.Errorf("netlink: %d bytes, %w", n, err)
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[16:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}
