package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"
)

// FuzzPackets sends the stack packets, each with its length before it, as they are
// and as segments of a connection.
func FuzzPackets(f *testing.F) {
	first := wrapSYN(far4.As4(), tool4.As4(), 40000)
	one := func(packets ...[]byte) (b []byte) {
		for _, p := range packets {
			b = append(binary.BigEndian.AppendUint16(b, uint16(len(p))), p...)
		}
		return b
	}
	second := bytes.Clone(first)
	second[33] = 0x10
	third := bytes.Clone(first)
	third[33] = 0x04
	f.Add(one(first), false)
	f.Add(one(first, second, third, first), false)
	f.Add(one(first[20:], second[20:]), true)
	f.Add(one(wrap(tool6, far6, protoTCP, first[20:])), false)
	said := wrapUDP(netip.AddrPortFrom(tool4, 1000), netip.AddrPortFrom(far4, 500), []byte("hello"))
	f.Add(one(said, said, wrapUDP(netip.AddrPortFrom(tool6, 1), netip.AddrPortFrom(far6, 1), nil), said[:27]), false)
	f.Add(one(wrap(tool6, far6, 0, first[20:]), wrap(tool4, far4, protoICMP, []byte{8, 0, 0, 0}), []byte{0x45}, nil), false)
	f.Fuzz(func(t *testing.T, data []byte, segments bool) {
		n, tool := newPipe(t, func(_ context.Context, c net.Conn) { io.Copy(c, c) })
		defer n.stop()
		for i := 0; len(data) >= 2 && i < 50; i++ {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			p := data[2 : 2+n]
			data = data[2+n:]
			if segments {
				p = wrap(tool4, far4, protoTCP, p)
			}
			if len(p) == 0 {
				continue // an empty packet is this socket's end
			}
			if _, err := tool.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		answered(t, tool)
	})
}

func TestPacketsThatNobodyExpectsAnAnswerToHaveNone(t *testing.T) {
	quiet := func(b []byte) bool {
		n := &netstack{names: newNames(testNet, 1), denials: newDenials(func(string, string, uint16, string) {}, 1)}
		answer, pass := n.judge(b)
		return answer == nil && !pass
	}
	udp4 := wrap(tool4, far4, protoUDP, []byte{1, 2, 3, 4, 0, 8, 0, 0})
	if quiet(udp4) {
		t.Error("a datagram is not refused")
	}
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(udp4)
		f(b)
		return b
	}
	for says, b := range map[string][]byte{
		"nothing":                            nil,
		"half a header":                      udp4[:19],
		"less than the header says":          udp4[:27],
		"of no version":                      change(func(b []byte) { b[0] = 0x55 }),
		"a header of four words":             change(func(b []byte) { b[0] = 0x44 }),
		"shorter than its header":            change(func(b []byte) { b[3] = 19 }),
		"a first fragment":                   change(func(b []byte) { b[6] = 0x20 }),
		"a later fragment":                   change(func(b []byte) { b[7] = 1 }),
		"to everybody":                       wrap(tool4, broadcast, protoUDP, udp4[20:]),
		"to a group":                         wrap(tool4, addr4(224, 0, 0, 251), protoUDP, udp4[20:]),
		"to nobody":                          wrap(tool4, addr4(0, 0, 0, 0), protoUDP, udp4[20:]),
		"to the loopback":                    wrap(tool4, addr4(127, 0, 0, 1), protoUDP, udp4[20:]),
		"from everybody":                     wrap(broadcast, far4, protoUDP, udp4[20:]),
		"from a group":                       wrap(addr4(224, 0, 0, 1), far4, protoTCP, udp4[20:]),
		"a datagram of less than it says":    change(func(b []byte) { b[25] = 9 }),
		"a datagram of less than its header": change(func(b []byte) { b[25] = 7 }),
		"half a datagram's header":           wrap(tool4, far4, protoUDP, udp4[20:27]),
		"an ICMP error":                      refuse(packet{whole: udp4, src: tool4, dst: far4}, noPort),
		"no ICMP at all":                     wrap(tool4, far4, protoICMP, nil),
		"half a header of IPv6":              wrap(tool6, far6, protoUDP, nil)[:39],
		"IPv6 to a group":                    wrap(tool6, addr6("ff02::fb"), protoUDP, udp4[20:]),
		"IPv6's looking for routers":         wrap(tool6, far6, protoICMPv6, []byte{133, 0, 0, 0}),
		"an ICMP error of IPv6":              wrap(tool6, far6, protoICMPv6, []byte{1, 0, 0, 0}),
		"a question that is an answer":       wrap(tool4, far4, protoUDP, append([]byte{1, 2, 0, 53, 0, 20, 0, 0, 0, 0, 0x80}, make([]byte, 9)...)),
	} {
		if !quiet(b) {
			t.Errorf("%s: answered", says)
		}
	}
}

func TestEveryProtocolIsRefusedInItsOwnWords(t *testing.T) {
	n := &netstack{names: newNames(testNet, 1), denials: newDenials(func(string, string, uint16, string) {}, 100)}
	for _, c := range []struct {
		says       string
		packet     []byte
		kind, code byte
	}{
		{"UDP", wrap(tool4, far4, protoUDP, []byte{1, 2, 3, 4, 0, 8, 0, 0}), 3, 3},
		{"UDP over IPv6", wrap(tool6, far6, protoUDP, []byte{1, 2, 3, 4, 0, 8, 0, 0}), 1, 4},
		{"an echo", wrap(tool4, far4, protoICMP, []byte{8, 0}), 3, 13},
		{"an echo over IPv6", wrap(tool6, far6, protoICMPv6, []byte{128, 0}), 1, 1},
		{"SCTP", wrap(tool4, far4, 132, nil), 3, 13},
		{"options of IPv6, whatever they are before", wrap(tool6, far6, 0, nil), 1, 1},
	} {
		answer, pass := n.judge(c.packet)
		p, ok := parse(answer)
		if !ok || pass || p.payload()[0] != c.kind || p.payload()[1] != c.code {
			t.Errorf("%s: %x, %t", c.says, answer, pass)
		}
	}
}

// FuzzConnection sends segments of a connection that is open, each of them eight
// bytes, of which the first says how many follow: its distance from the right
// sequence number and from the right acknowledgement, its header's length, its
// flags and its window.
func FuzzConnection(f *testing.F) {
	f.Add([]byte{5, 0, 0, 5, ack, 0xff, 0xff, 0, 'h', 'e', 'l', 'l', 'o', 0, 5, 5, 5, ack | fin, 0xff, 0xff, 0})
	f.Add([]byte{12, 0, 0, 8, ack, 1, 0, 0, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9, 1, 1, 0, 0, 0, 5, rst, 0, 0, 0})
	f.Add([]byte{4, 200, 0, 5, ack, 0xff, 0xff, 0, 'l', 'a', 't', 'e', 4, 0, 250, 5, ack, 0, 0, 0, 'x', 'y', 'z', 'u', 0, 0, 0, 5, syn, 9, 9, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		n, tool := newPipe(t, func(_ context.Context, c net.Conn) {
			io.WriteString(c, "hello")
			io.Copy(c, c)
		})
		defer n.stop()
		p := &peer{t: t, tool: tool, port: 1025}
		p.open(1000)
		for i := 0; len(data) >= 8 && i < 50; i++ {
			head, length := data[:8], min(int(data[0]), len(data)-8)
			h := binary.BigEndian.AppendUint16([]byte{4, 1}, 80)
			h = binary.BigEndian.AppendUint32(h, p.seq+uint32(int8(head[1])))
			h = binary.BigEndian.AppendUint32(h, p.ack+uint32(int8(head[2])))
			h = append(h, head[3]<<4, head[4], head[5], head[6], 0, 0, 0, head[7])
			h = append(h, data[8:8+length]...)
			data = data[8+length:]
			if _, err := tool.Write(wrap(tool4, far4, protoTCP, h)); err != nil {
				t.Fatal(err)
			}
		}
		answered(t, tool)
	})
}
