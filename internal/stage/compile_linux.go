package stage

import (
	"fmt"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// Identity is the user and group that the stage runs as, outside.
type Identity struct{ UID, GID int }

// A Template is a plan lowered to system calls, with every pointer an offset.
// It does not change once made and serves any number of runs.
type Template struct {
	ops    [wire.Places][]wire.Op
	blob   []byte
	steps  []wire.Span
	names  []string
	header wire.Header
	given  []givenFile

	ports    []uint32 // where the ports of rules lie that each run gives
	connects int      // how many of the supervisor's addresses each run gives, the last of them
}

// killedStep is the least number that is no step of a plan, but has a meaning of
// its own: see child.
const killedStep = 0xfffc

// StepName returns the words of step i, for an error.
func (t *Template) StepName(i int) string {
	if i >= 0 && i < len(t.names) {
		return t.names[i]
	}
	switch i {
	case 0xffff:
		return "execute the tool"
	case 0xfffe:
		return "clone a process"
	case 0xfffd:
		return "prepare the stage"
	case killedStep:
		return "execute the tool: its system call filter killed it first"
	}
	return "unknown step"
}

// Compile lowers a plan for a stage that runs as id.
func Compile(p plan.Plan, id Identity) (*Template, error) {
	c := &compiler{id: id, strings: map[string]uint64{}, dirs: map[string]bool{}, covers: map[string]bool{},
		rules: map[string]landlock.AccessFS{}, ruled: map[string]bool{}}
	c.t.header = wire.Header{Magic: wire.Magic, DeadlineMS: p.DeadlineMS}
	if err := c.around(p); err != nil {
		return nil, err
	}
	if p.Own {
		c.own()
	}
	c.clones(p.Namespaces)
	c.foresee(p.Steps)
	if len(p.Steps) > killedStep {
		return nil, fmt.Errorf("%d steps, of which only %d can be told apart", len(p.Steps), killedStep)
	}
	for i, s := range p.Steps {
		c.step, c.place = uint16(i), place(s.In)
		name := s.Do.String()
		c.t.names = append(c.t.names, name)
		off := c.str(name).v
		c.t.steps = append(c.t.steps, wire.Span{Off: uint32(off), Len: uint32(len(name))})
		if err := c.lower(s.Do); err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i, name, err)
		}
	}
	return &c.t, nil
}

func place(p plan.Place) int {
	return [...]int{plan.Stage: wire.InStage, plan.Init: wire.InInit, plan.Tool: wire.InTool}[p]
}

func (c *compiler) clones(n plan.Namespaces) {
	h := &c.t.header
	for _, f := range []struct {
		on   bool
		flag uint64
	}{
		{n.User, unix.CLONE_NEWUSER}, {n.Mount, unix.CLONE_NEWNS}, {n.PID, unix.CLONE_NEWPID}, {n.IPC, unix.CLONE_NEWIPC},
		{n.UTS, unix.CLONE_NEWUTS}, {n.Cgroup, unix.CLONE_NEWCGROUP}, {n.Net, unix.CLONE_NEWNET},
	} {
		if f.on {
			h.InitClone |= f.flag
		}
	}
	if n.PID && h.Flags&wire.FlagAsPID1 == 0 {
		h.Flags |= wire.FlagPIDNS
	}
}

// around notes what surrounds the steps: descriptors, namespaces to join.
func (c *compiler) around(p plan.Plan) error {
	h := &c.t.header
	if p.Given >= wire.MaxGiven {
		return fmt.Errorf("%d descriptors are given: %w", p.Given, unix.EMFILE)
	}
	h.JoinUser, h.JoinPID = int32(p.Join.User), int32(p.Join.PID)
	if p.AsPID1 {
		h.Flags |= wire.FlagAsPID1
	}
	return nil
}

// A compiler turns actions into ops, one method for each kind of action.
type compiler struct {
	t       Template
	id      Identity
	place   int
	step    uint16
	strings map[string]uint64 // text -> offset in the blob
	dirs    map[string]bool   // directories made in the new root
	layers  int               // mounts that lie between the harness's root and the new one
	covers  map[string]bool   // what has been put where: a tree of the host, or of the scratch

	foreseen *landlock.Ruleset            // what init's files get
	rules    map[string]landlock.AccessFS // its path rules
	ruled    map[string]bool              // those that are added already
	begun    bool                         // it is in RegRuleset

	rooted bool                // RegRoot is the new root
	inNet  bool                // init is in a network namespace of the sandbox's
	slots  [plan.MaxSlots]bool // those that a descriptor is passed up for
}

// arg is an op's argument before it is placed.
type arg struct {
	kind uint8
	v    uint64
}

func imm[T ~int | ~uint32 | ~uint64 | ~int64](v T) arg { return arg{wire.Imm, uint64(v)} }
func reg(r int) arg                                    { return arg{wire.Reg, uint64(r)} }
func ptr(off uint64) arg                               { return arg{wire.Ptr, off} }

const atCwd = unix.AT_FDCWD

// call appends a system call.
func (c *compiler) call(nr int, args ...arg) *wire.Op {
	op := wire.Op{Nr: uint32(nr), Step: c.step, Save: wire.RegNone}
	for i, a := range args {
		op.Kind[i], op.Arg[i] = a.kind, a.v
	}
	list := &c.t.ops[c.place]
	*list = append(*list, op)
	return &(*list)[len(*list)-1]
}

// last is the op that was appended last.
func (c *compiler) last() *wire.Op {
	list := c.t.ops[c.place]
	return &list[len(list)-1]
}

// save makes the last call keep its result.
func (c *compiler) save(nr, register int, args ...arg) {
	c.call(nr, args...).Save = int8(register)
}

func (c *compiler) close(register int) { c.call(unix.SYS_CLOSE, reg(register)) }

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

// lower is the list of what is no matter of files, a layout or the network.
func (c *compiler) lower(action plan.Action) error {
	switch a := action.(type) {
	case plan.MapIDs:
		c.mapUser(a)
	case plan.NestUser:
		c.nestUser(a)
	case plan.OpenProc:
		c.save(unix.SYS_OPENAT, wire.RegProc, imm(atCwd), c.str("/proc"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	case plan.OpenRoot:
		c.save(unix.SYS_OPENAT, wire.RegOldRoot, imm(atCwd), c.str("/"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	case plan.Loopback:
		return c.loopback(a)
	case plan.JoinKeyring:
		c.joinKeyring(a)
	case plan.SetNoNewPrivs:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_NO_NEW_PRIVS), imm(1))
		c.call(wire.OpNoNewPrivs).Probe = CheckNoNewPrivs + 1
	case plan.DropCapabilities:
		c.dropCapabilities(a)
	case plan.DropLast:
		c.capset(0, 0)
	case plan.Undumpable:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_DUMPABLE), imm(0))
	case plan.RestrictFiles:
		return c.landlock(a.Ruleset, a.Follow, a.GivenPorts)
	case plan.CheckRoot:
		c.checkRoot()
	case plan.CheckSignal:
		c.call(wire.OpSignalInit).Probe = CheckSignal + 1
	case plan.CheckKeyring:
		c.save(unix.SYS_KEYCTL, wire.RegKeyring, imm(unix.KEYCTL_GET_KEYRING_ID), imm(unix.KEY_SPEC_SESSION_KEYRING), imm(0))
		c.last().Probe = probeIgnored + 1
	case plan.SetLimits:
		c.limits(a.Settings)
	case plan.Chdir:
		c.call(wire.OpCwd)
	case plan.OwnNull:
		c.call(wire.OpNull)
	case plan.RestoreSignals:
		c.call(wire.OpSignals)
	case plan.LoadFilter:
		c.filter(a.Program.Bytes(), 0)
	case plan.LoadKeeperFilter:
		return c.keeperFilter(a.Program.Bytes())
	case plan.LoadSupervisor:
		return c.supervisor(a)
	default:
		return c.lowerMount(action)
	}
	return nil
}
