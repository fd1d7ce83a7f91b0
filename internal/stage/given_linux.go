package stage

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// fill lets the run's copy of the ops write the run's files. One that the run
// does not bring stays empty.
func (t *Template) fill(e *encoder, h wire.Header, files []string) {
	if len(t.given) == 0 {
		return
	}
	offsets := map[int]uint32{}
	for _, g := range t.given {
		if g.file >= len(files) {
			continue
		}
		if _, there := offsets[g.file]; !there {
			offsets[g.file] = e.text(files[g.file])
		}
		at := h.Ops[g.place].Off + uint32(g.op)*uint32(unsafe.Sizeof(wire.Op{}))
		op := (*wire.Op)(unsafe.Pointer(&e.buf[at]))
		op.Arg[1], op.Arg[2] = uint64(offsets[g.file]), uint64(len(files[g.file]))
	}
}

// endpointBytes is how the supervisor's rules end: with an address and a port for each
// endpoint (supervisor.Rules).
const endpointBytes = 6

// allow lets the run connect to its own addresses. Where it brings none, those of
// the plan stay, at which nothing listens.
func (t *Template) allow(e *encoder, h wire.Header, to []netip.AddrPort) {
	if len(to) != t.connects {
		return
	}
	end := h.Supervisor.Off + h.Supervisor.Len
	for i, a := range to {
		at := e.buf[end-uint32((t.connects-i)*endpointBytes):]
		ip := a.Addr().As4()
		copy(at, ip[:])
		binary.BigEndian.PutUint16(at[4:], a.Port())
	}
	for i, at := range t.ports {
		if i < len(to) {
			binary.NativeEndian.PutUint64(e.buf[at:], uint64(to[i].Port()))
		}
	}
}
