package capture

import (
	"encoding/binary"
	"net/netip"
)

// An unreachable is why a packet goes nowhere, as ICMP's "destination
// unreachable" says it.
type unreachable int

const (
	prohibited unreachable = iota // RFC 1812, 5.2.7.1: communication administratively prohibited
	noPort                        // no socket at the port: a client then tries without it
)

// refuse returns the ICMP message that refuses a packet.
func refuse(p packet, why unreachable) []byte {
	if p.dst.Is4() {
		code := byte(13)
		if why == noPort {
			code = 3
		}
		// RFC 1812, 4.3.2.3: as much of the packet as fits into 576 bytes.
		return icmp(p, protoICMP, 3, code, 576-20-8)
	}
	code := byte(1)
	if why == noPort {
		code = 4
	}
	return icmp(p, protoICMPv6, 1, code, 1280-40-8) // RFC 4443, 3.1
}

// icmp returns an ICMP error about a packet, from where the packet was going.
func icmp(p packet, protocol, kind, code byte, most int) []byte {
	quoted := p.whole[:min(len(p.whole), most)]
	body := make([]byte, 8, 8+len(quoted))
	body[0], body[1] = kind, code
	body = append(body, quoted...)
	var sum uint32
	if protocol == protoICMPv6 {
		sum = pseudo(p.dst, p.src, protocol, len(body))
	}
	binary.BigEndian.PutUint16(body[2:], checksum(sum, body))
	return wrap(p.dst, p.src, protocol, body)
}

// udp returns a packet that answers another one from where it was going.
func udp(p packet, from, to uint16, data []byte) []byte {
	return wrapUDP(netip.AddrPortFrom(p.dst, to), netip.AddrPortFrom(p.src, from), data)
}

// mostData is what a datagram has room for in IPv4, the headers taken off.
const mostData = 1<<16 - 1 - 20 - 8

// wrapUDP returns a packet with a datagram; nil: no packet has room for it.
func wrapUDP(from, to netip.AddrPort, data []byte) []byte {
	if len(data) > mostData {
		return nil
	}
	body := make([]byte, 8, 8+len(data))
	binary.BigEndian.PutUint16(body, from.Port())
	binary.BigEndian.PutUint16(body[2:], to.Port())
	binary.BigEndian.PutUint16(body[4:], uint16(8+len(data)))
	body = append(body, data...)
	sum := checksum(pseudo(from.Addr(), to.Addr(), protoUDP, len(body)), body)
	if sum == 0 {
		sum = 0xffff // 0 is "no checksum" (RFC 768)
	}
	binary.BigEndian.PutUint16(body[6:], sum)
	return wrap(from.Addr(), to.Addr(), protoUDP, body)
}

// wrap puts an IP header before a body.
func wrap(from, to netip.Addr, protocol byte, body []byte) []byte {
	const hops = 64
	if from.Is4() {
		h := make([]byte, 20, 20+len(body))
		h[0] = 4<<4 | 5
		binary.BigEndian.PutUint16(h[2:], uint16(20+len(body)))
		h[8], h[9] = hops, protocol
		copy(h[12:], from.AsSlice())
		copy(h[16:], to.AsSlice())
		binary.BigEndian.PutUint16(h[10:], checksum(0, h))
		return append(h, body...)
	}
	h := make([]byte, 40, 40+len(body))
	h[0] = 6 << 4
	binary.BigEndian.PutUint16(h[4:], uint16(len(body)))
	h[6], h[7] = protocol, hops
	copy(h[8:], from.AsSlice())
	copy(h[24:], to.AsSlice())
	return append(h, body...)
}

// pseudo is the sum over the header that checksums of UDP and ICMPv6 include.
func pseudo(from, to netip.Addr, protocol byte, length int) uint32 {
	return add(add(uint32(protocol)+uint32(length), from.AsSlice()), to.AsSlice())
}

// checksum is the Internet's (RFC 1071). What is written into the sum's own field
// must be zero while it is taken.
func checksum(sum uint32, b []byte) uint16 {
	sum = add(sum, b)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// add cannot overflow: a packet has at most 32,768 pairs of bytes.
func add(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}
