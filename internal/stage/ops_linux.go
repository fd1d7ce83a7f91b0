package stage

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// A compiler turns actions into ops, one method for each kind of action.
type compiler struct {
	t       Template
	id      Identity
	process int
	step    uint16
	strings map[string]uint64 // text -> offset in the blob
	dirs    map[string]bool   // directories made in the new root
	layers  int               // mounts that lie between the harness's root and the new one
	mounted map[string]bool   // what has been put where: a tree of the host, or of the scratch
	linked  map[string]bool   // symbolic links made in the new root

	initRules *landlock.Ruleset            // what init's files get
	rules     map[string]landlock.AccessFS // its path rules
	ruled     map[string]bool              // those that are added already
	begun     bool                         // it is in RegRuleset

	blank    uint16              // the step that has opened regBlank, plus one; 0: none
	detach   uint16              // the step that takes the harness's root off beside init, plus one; 0: none
	awaited  bool                // the tool's process waits until it is off
	viewed   bool                // regView and regViewed are open
	rooted   bool                // RegRoot is the new root
	inNet    bool                // init is in a network namespace of the sandbox's
	settings bool                // regSettings is open
	slots    [plan.MaxSlots]bool // those that a descriptor is passed up for
}

// arg is an op's argument before it is placed.
type arg struct {
	kind uint8
	v    uint64
}

func imm[T ~int | ~uint32 | ~uint64 | ~int64](v T) arg { return arg{wire.Imm, uint64(v)} }

func reg(r int) arg { return arg{wire.Reg, uint64(r)} }

func ptr(off uint64) arg { return arg{wire.Ptr, off} }

const atCwd = unix.AT_FDCWD

// call appends a system call.
func (c *compiler) call(nr int, args ...arg) *wire.Op {
	op := wire.Op{Nr: uint32(nr), Step: c.step, Save: wire.RegNone}
	for i, a := range args {
		op.Kind[i], op.Arg[i] = a.kind, a.v
	}
	list := &c.t.ops[c.process]
	*list = append(*list, op)
	return &(*list)[len(*list)-1]
}

// last is the op that was appended last.
func (c *compiler) last() *wire.Op {
	list := c.t.ops[c.process]
	return &list[len(list)-1]
}

// unless makes the last call leave out, if it fails with errno, the calls from there to where end is called.
func (c *compiler) unless(errno syscall.Errno) (end func()) {
	at, process := len(c.t.ops[c.process])-1, c.process
	c.last().Ignore[0] = uint16(errno)
	return func() {
		list := c.t.ops[process]
		list[at].Skip = uint8(len(list) - at - 1)
	}
}

// save makes the last call keep its result.
func (c *compiler) save(nr, register int, args ...arg) {
	c.call(nr, args...).Save = int8(register)
}

func (c *compiler) close(register int) { c.call(unix.SYS_CLOSE, reg(register)) }

// closeLater is close of what neither writes to a file nor is waited for, in one call with others.
func (c *compiler) closeLater(register int) {
	if c.process != wire.InInit {
		c.close(register)
		return
	}
	c.call(wire.OpCloseLater, reg(register))
}

// data puts bytes into the blob, 8-byte aligned, and returns where. Offsets
// count from the program's start.
func (c *compiler) data(b []byte) arg {
	for len(c.t.blob)%8 != 0 {
		c.t.blob = append(c.t.blob, 0)
	}
	off := uint64(unsafe.Sizeof(wire.Header{})) + uint64(len(c.t.blob))
	c.t.blob = append(c.t.blob, b...)
	return ptr(off)
}

// str puts a null-terminated string into the blob, once.
func (c *compiler) str(s string) arg {
	if off, ok := c.strings[s]; ok {
		return ptr(off)
	}
	a := c.data(append([]byte(s), 0))
	c.strings[s] = a.v
	return a
}

// structure puts a struct of plain numbers into the blob, once for each
// content.
func structure[T any](c *compiler, v T) arg {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	key := "\x00struct:" + string(b)
	if off, ok := c.strings[key]; ok {
		return ptr(off)
	}
	a := c.data(b)
	c.strings[key] = a.v
	return a
}

// off is the offset of a string in the program.
func (c *compiler) off(s string) uint32 { return uint32(c.str(s).v) }
