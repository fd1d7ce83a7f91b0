package capture

import (
	"encoding/binary"
	"net/netip"
)

// The protocols that IP carries, by number.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// A packet is what is known of an IP packet whose headers are whole. Its slices
// are the device's buffer.
type packet struct {
	whole    []byte // without what follows the packet
	header   int    // bytes of the IP header
	protocol byte
	src, dst netip.Addr
}

// payload is what the IP header is followed by.
func (p packet) payload() []byte { return p.whole[p.header:] }

// parse reads a packet's headers. A packet that is cut short, a fragment, or from
// or to anything but one host is not ok: no answer is due to one (RFC
// 1122, 3.2.2), and a tool's kernel, which sees a device of 64 KiB, sends no
// fragments.
func parse(b []byte) (p packet, ok bool) {
	if len(b) == 0 {
		return packet{}, false
	}
	switch b[0] >> 4 {
	case 4:
		p, ok = parse4(b)
	case 6:
		p, ok = parse6(b)
	}
	return p, ok && isHost(p.src) && isHost(p.dst)
}

// parse4 reads an IPv4 header (RFC 791, 3.1).
func parse4(b []byte) (packet, bool) {
	if len(b) < 20 {
		return packet{}, false
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	fragment := binary.BigEndian.Uint16(b[6:]) & 0x3fff // More Fragments, and an offset
	if header < 20 || total < header || total > len(b) || fragment != 0 {
		return packet{}, false
	}
	return packet{
		whole: b[:total], header: header, protocol: b[9],
		src: netip.AddrFrom4([4]byte(b[12:16])), dst: netip.AddrFrom4([4]byte(b[16:20])),
	}, true
}

// parse6 reads an IPv6 header (RFC 8200, 3). A header of options counts as a
// protocol that is not supported.
func parse6(b []byte) (packet, bool) {
	if len(b) < 40 {
		return packet{}, false
	}
	total := 40 + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		return packet{}, false
	}
	return packet{
		whole: b[:total], header: 40, protocol: b[6],
		src: netip.AddrFrom16([16]byte(b[8:24])), dst: netip.AddrFrom16([16]byte(b[24:40])),
	}, true
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// isHost reports whether an address is one host's, on a network.
func isHost(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a != broadcast
}

// datagram reads a UDP header (RFC 768).
func (p packet) datagram() (from, to uint16, data []byte, ok bool) {
	b := p.payload()
	if len(b) < 8 {
		return 0, 0, nil, false
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < 8 || n > len(b) {
		return 0, 0, nil, false
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), b[8:n], true
}

// asks reports whether the sender of a packet waits for an answer:
// anything but ICMP, and of that what asks (RFC 792, RFC 4443: an error is not
// answered by an error, and what a host says of itself to its neighbours neither).
func (p packet) asks() bool {
	b := p.payload()
	switch p.protocol {
	case protoICMP:
		return len(b) > 0 && (b[0] == 8 || b[0] == 13) // echo, timestamp
	case protoICMPv6:
		return len(b) > 0 && b[0] == 128 // echo
	}
	return true
}
