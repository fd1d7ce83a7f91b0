package runner

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestListenersInTheKernelsTable(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the table is a little-endian machine's")
	}
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 23
   2: 0100007F:0050 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0000000000000000 20 4 30 10 -1
   3: malformed
   4: 010000:0050 0100007F:C350 0A 00000000:00000000 00:00000000 00000000     0        0 22
`
	got := socketsIn([]byte(table), "tcp")
	for i, want := range []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("[::1]:3000")} {
		if len(got) != 2 || netip.AddrPortFrom(got[i].Address, got[i].Port.Port) != want || got[i].inode != []uint64{21, 23}[i] || got[i].Protocol != "tcp" {
			t.Errorf("%v: %+v", want, got)
		}
	}
	if got := socketsIn([]byte(table), "udp"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
