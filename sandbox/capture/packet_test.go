package capture

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

var (
	tool4, far4 = netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("93.184.216.34")
	tool6, far6 = netip.MustParseAddr("fd00:5::1"), netip.MustParseAddr("2606:2800:220:1::1")
)

// sumOf is the sum that a receiver takes over a packet's checksummed part: it is
// zero for one that is whole.
func sumOf(p packet) uint16 {
	if p.protocol == protoICMP {
		return checksum(0, p.payload())
	}
	return checksum(pseudo(p.src, p.dst, p.protocol, len(p.payload())), p.payload())
}

func TestAnswersAreWholePacketsBackToWhereTheQuestionCameFrom(t *testing.T) {
	kerneltest.Long(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		data := make([]byte, r.IntN(2000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		from, to := tool4, far4
		if r.IntN(2) == 0 {
			from, to = tool6, far6
		}
		question, ok := parse(wrap(from, to, protoUDP, append([]byte{1, 2, 3, 4, 0, 0, 0, 0}, data...)))
		if !ok {
			t.Fatal("a question of the test's own is no packet")
		}
		for _, b := range [][]byte{refuse(question, noPort), refuse(question, prohibited), udp(question, 0x102, 0x304, data)} {
			p, ok := parse(b)
			if !ok || p.src != to || p.dst != from || len(p.whole) != len(b) || sumOf(p) != 0 {
				t.Fatalf("%x: %+v, %t, sum %x", b, p, ok, sumOf(p))
			}
			if p.src.Is4() && checksum(0, b[:p.header]) != 0 {
				t.Fatalf("%x: the header's sum is %x", b, checksum(0, b[:p.header]))
			}
			if p.protocol != protoUDP && (len(b) > 1280 || !bytes.HasPrefix(question.whole, p.payload()[8:])) {
				t.Fatalf("%d bytes, of which the quotation is not the question's", len(b))
			}
		}
	}
}

func addr4(a, b, c, d byte) netip.Addr { return netip.AddrFrom4([4]byte{a, b, c, d}) }

func addr6(s string) netip.Addr { return netip.MustParseAddr(s) }
