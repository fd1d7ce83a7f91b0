package sandbox

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// makeDevice asks for a dummy device.
func makeDevice(ground) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	attribute := func(kind uint16, value string) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	body := append(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_IFNAME, "attack1\x00")...)
	body = append(body, attribute(unix.IFLA_LINKINFO, string(attribute(unix.IFLA_INFO_KIND, "dummy\x00")))...)
	b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWLINK)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	b = append(append(b, make([]byte, 8)...), body...)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	if n, err := unix.Read(fd, answer); err != nil || n < 20 {
		return errors.Join(err, unix.EIO)
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[16:])); e != 0 {
		return unix.Errno(e)
	}
	return nil
}

// sendNetlink sends from one socket to another, as to a program of the host's that listens for changes of its network.
func sendNetlink(ground) error {
	var fds [2]int
	for i := range fds {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		fds[i] = fd
	}
	to, err := unix.Getsockname(fds[1])
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], make([]byte, unix.NLMSG_HDRLEN), 0, to)
}

// claimNetlink takes a number that a program of the host's may be to have.
func claimNetlink(ground) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: 1<<30 + uint32(os.Getpid())})
}

// hearMulticastRoutes joins a group that the kernel lets CAP_NET_ADMIN alone have (rtnetlink_bind), asked of the process that binds.
func hearMulticastRoutes(ground) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.RTNLGRP_IPV4_MROUTE_R - 1)})
}
