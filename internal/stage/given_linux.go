package stage

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A givenFile is a write whose text each run brings: an op, and which of the
// run's files it is.
type givenFile struct{ place, op, file int }

// writeGiven writes file given-1 of the run to regDest; 0: there is none.
func (c *compiler) writeGiven(given int) {
	if given <= 0 {
		return
	}
	c.call(unix.SYS_WRITE, reg(regDest), ptr(0), imm(0))
	c.t.given = append(c.t.given, givenFile{c.place, len(c.t.ops[c.place]) - 1, given - 1})
}

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
// the plan stay, at which nobody listens.
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

// coverFile puts a mount of a file that has been made in the new root over another.
func (c *compiler) coverFile(a plan.Cover) {
	c.clone(wire.RegRoot, rel(a.By), regTree, false)
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.attach(regTree, a.Path)
	c.close(regTree)
}
