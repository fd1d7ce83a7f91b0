package stage

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A Run is what one command adds to a template.
type Run struct {
	Path       string   // the tool, as the sandbox sees it
	Argv, Env  []string // without NUL bytes
	ExtraFiles int      // how many descriptors from 3 up are the tool's
	Tell       bool     // the stage says how the run ended (Control.Ended)
	Quiet      bool     // the harness reads the control socket; keep stderr clean
	Apart      bool     // the tool leaves the harness's session
	OwnTTY     bool     // or stays there, and has its terminal only if that is one of its descriptors
	Probe      bool     // run the ops and report; there is no tool
	Ignored    uint64   // signals that the tool ignores, bit n-1 for signal n
	Own        string   // the run's own directory, if the plan needs one
	DeadlineMS int64    // overrides the plan's when positive
	Untimed    bool     // there is no deadline

	Given  int           // how many descriptors are given
	Made   bool          // the last of them is the record of what tools have made
	Layout launch.Layout // where they are, and the program
	Exe    bool          // the last of them is the tool; if it enters a session, the last of its own descriptors

	More    []string // paths to try when Path is not there, in order
	Dirs    []Dir    // directories to start in, the first that is there; none: the one of the harness
	SetsPWD bool     // the last of Env becomes the Dir's PWD
	Files   []string // what stands in the plan's files that each run gives

	Serves, Enters bool // the stage begins a session, or a command of one: the first given descriptor is its socket
	Shares         bool // with Enters: the session's own program was made from this template, and the stage finds there what is the template's
	Batch          bool // with Enters: the plan's
	Last           bool // with Enters: the session ends with this command
	Ready          bool // with Serves: a process stands ready for the next command, and the second given descriptor is the socket of those commands

	Connects    []netip.AddrPort // IPv4 addresses of this machine's loopback, in the place of the plan's
	Born, Built bool             // the harness has a hook at these gates
}

// A Dir is a directory to start in, and what PWD says then; "" leaves PWD out.
type Dir struct{ Path, PWD string }

// Program lays the template and one run out as the stage reads them. The
// program goes into descriptor 3+ExtraFiles, the control socket into the next.
func (t *Template) Program(r Run) []byte { return t.program(make([]byte, 0, t.size(r)), r) }

// Sealed is the program in a memfd; see Seal. Its memory serves the next run, so
// that runs with a thousand rules do not keep the garbage collector busy.
func (t *Template) Sealed(r Run) (*os.File, error) {
	buf, _ := buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = t.program(slices.Grow((*buf)[:0], t.size(r)), r)
	f, err := Seal(*buf)
	clear(*buf) // the environment may hold secrets
	buffers.Put(buf)
	return f, err
}

var buffers sync.Pool

func (t *Template) program(buf []byte, r Run) []byte {
	e := encoder{buf: buf[:unsafe.Sizeof(wire.Header{})]}
	h := t.header
	if r.Shares {
		h.Own, h.Supervisor = 0, wire.Span{}
	} else {
		t.lay(&e, &h, r)
	}
	h.Argv = e.vector(r.Argv)
	h.Envp = e.vector(r.Env)
	h.Path, h.Paths = e.text(r.Path), uint32(1+len(r.More))
	for _, p := range r.More {
		e.text(p)
	}
	e.dirs(&h, r)
	h.Given, h.GivenFD = int32(r.Given), int32(r.Layout.Given)
	if r.Exe {
		h.Exe = h.Given
	}
	if r.Serves || r.Untimed {
		h.DeadlineMS = 0 // a session's is each command's
	}
	if r.Serves || r.Enters {
		h.Session = 1
	}
	if r.Made {
		h.Made = h.Given
	}
	for _, flag := range [...]struct {
		is   bool
		flag uint64
	}{
		{r.Born, wire.FlagBorn}, {r.Built, wire.FlagBuilt}, {r.Serves, wire.FlagSession}, {r.Enters, wire.FlagCommand}, {r.Shares, wire.FlagShares},
		{r.Ready, wire.FlagReady}, {r.Batch, wire.FlagBatch}, {r.Tell, wire.FlagTell}, {r.Quiet, wire.FlagQuiet}, {r.Probe, wire.FlagProbe},
		{r.Apart, wire.FlagApart}, {r.Last, wire.FlagLast}, {r.OwnTTY, wire.FlagOwnTTY},
	} {
		if flag.is {
			h.Flags |= flag.flag
		}
	}

	h.Size = uint64(len(e.buf))
	h.Extra = int32(3 + r.ExtraFiles)
	h.SelfFD, h.ControlFD, h.PathFD = int32(r.Layout.Program), int32(r.Layout.Program+1), int32(r.Layout.Swapped)
	h.HarnessPID = int32(os.Getpid())
	h.IgnoredSigs = r.Ignored
	if r.DeadlineMS > 0 {
		h.DeadlineMS = r.DeadlineMS
	}
	copy(e.buf, bytesOf(&h))
	return e.buf
}

// lay appends what is the template's.
func (t *Template) lay(e *encoder, h *wire.Header, r Run) {
	e.buf = append(e.buf, t.blob...)
	for i, list := range t.ops {
		if !r.Enters || i == wire.InTool {
			h.Ops[i] = appendAll(e, list)
		}
	}
	if !r.Enters {
		t.fill(e, *h, r.Files)
	}
	t.allow(e, *h, r.Connects)
	h.Steps = appendAll(e, t.steps)
	if h.Own != 0 {
		copy(e.buf[h.Own:h.Own+maxOwn-1], r.Own)
	}
}

// size is at least what the program will need, so that it is allocated once.
func (t *Template) size(r Run) int {
	n := int(unsafe.Sizeof(wire.Header{})) + len(t.blob) + len(t.steps)*8 + 256 + len(r.Path)
	for _, list := range t.ops {
		n += len(list) * int(unsafe.Sizeof(wire.Op{}))
	}
	for _, list := range [...][]string{r.Argv, r.Env, r.More, r.Files} {
		for _, s := range list {
			n += len(s) + 9
		}
	}
	for _, d := range r.Dirs {
		n += len(d.Path) + len(d.PWD) + 18
	}
	return n
}

type encoder struct{ buf []byte }

func (e *encoder) text(s string) uint32 {
	off := uint32(len(e.buf))
	e.buf = append(append(e.buf, s...), 0)
	return off
}

// vector appends strings and the vector of their offsets, which a zero ends.
func (e *encoder) vector(list []string) wire.Span {
	offsets := make([]uint64, len(list)+1)
	for i, s := range list {
		offsets[i] = uint64(e.text(s))
	}
	return appendAll(e, offsets)
}

// dirs appends the directories to start in.
func (e *encoder) dirs(h *wire.Header, r Run) {
	list := make([]wire.Dir, len(r.Dirs))
	for i, d := range r.Dirs {
		if list[i].Path = e.text(d.Path); d.PWD != "" {
			list[i].Variable = e.text("PWD=" + d.PWD)
		}
	}
	h.Dirs = appendAll(e, list)
	if r.SetsPWD && len(r.Env) > 0 {
		h.DirSlot = h.Envp.Off + uint32(8*(len(r.Env)-1))
	}
}

func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

func appendAll[T any](e *encoder, list []T) wire.Span {
	for len(e.buf)%8 != 0 {
		e.buf = append(e.buf, 0)
	}
	off := uint32(len(e.buf))
	if len(list) > 0 {
		e.buf = append(e.buf, unsafe.Slice((*byte)(unsafe.Pointer(&list[0])), len(list)*int(unsafe.Sizeof(list[0])))...)
	}
	return wire.Span{Off: off, Len: uint32(len(list))}
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
}

// Seal puts a program, to which it gives the unstarted tool's secret name, into
// a memfd that no process can change any more.
func Seal(program []byte) (*os.File, error) {
	const name = unsafe.Offsetof(wire.Header{}.Name)
	if len(program) >= int(unsafe.Sizeof(wire.Header{})) {
		copy(program[name:], "/"+rand.Text()[:14])
	}
	fd, err := unix.MemfdCreate("holdfast", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "holdfast program")
	if _, err := f.Write(program); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the stage's program: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the stage's program: %w", err)
	}
	return f, nil
}
