package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"golang.org/x/sys/unix"
)

// landlock builds the ruleset and restricts the calling thread.
func (c *compiler) landlock(r landlock.Ruleset, follow bool) error {
	h := pathHow
	if follow {
		h.resolve &^= unix.RESOLVE_NO_SYMLINKS
	}
	if r.HandlesNothing() {
		return errors.New("the ruleset handles nothing, and would restrict nothing")
	}
	if !c.begun || c.process != wire.InInit {
		c.createRuleset(r)
	}
	for _, rule := range r.Paths {
		if c.process == wire.InInit && c.ruled[rule.Path] {
			continue
		}
		if rule.Path == plan.InitsProc {
			c.rule(rule.Access, wire.RegProc)
			continue
		}
		if rule.Path == "/" && c.rooted && !follow {
			c.rule(rule.Access, wire.RegRoot)
			continue
		}
		name := c.str(rule.Path)
		if rule.Path == plan.OwnDirectory {
			name = c.own()
		}
		c.save(unix.SYS_OPENAT2, wire.RegFree, imm(atCwd), name, structure(c, h), imm(24))
		if follow { // a later entry of the layout has covered it
			c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 2
		}
		c.rule(rule.Access, wire.RegFree)
		c.closeLater(wire.RegFree)
	}
	c.terminals(r.HandledFS() & (landlock.FSReadFile | landlock.FSWriteFile | landlock.FSIoctlDev))
	for _, rule := range r.Ports {
		b := landlock.NetPortAttr(rule.Access, rule.Port)
		at := c.data(b[:])
		c.call(unix.SYS_LANDLOCK_ADD_RULE, reg(wire.RegRuleset), imm(landlockRuleNetPort), at, imm(0))
	}
	c.call(unix.SYS_LANDLOCK_RESTRICT_SELF, reg(wire.RegRuleset), imm(0))
	c.close(wire.RegRuleset)
	if c.process == wire.InInit {
		c.begun, c.initRules = false, nil // a later one is another
		clear(c.ruled)
	}
	return nil
}

func (c *compiler) createRuleset(r landlock.Ruleset) {
	attr := r.Attr()
	c.save(unix.SYS_LANDLOCK_CREATE_RULESET, wire.RegRuleset, c.data(attr), imm(len(attr)), imm(0))
}

// terminals lets the tool open anew the terminals that it has been given: as
// /dev/tty, as /dev/stderr. They lie on the harness's devpts, where no path
// rule leads. Where that is the tool's, too, the supervisor opens them.
func (c *compiler) terminals(access landlock.AccessFS) {
	keep := 1
	if c.rooted {
		keep = 0
	}
	for fd := 0; fd < 3 && access != 0; fd++ {
		is := c.call(wire.OpTerminal, imm(fd), imm(keep))
		is.Ignore[0], is.Skip = uint16(unix.ENOTTY), 1
		c.call(wire.OpRule, imm(uint64(access)), imm(fd))
	}
}

// own reserves the place where each run writes the path of its own directory.
func (c *compiler) own() arg {
	if !c.t.NeedsOwn {
		c.t.NeedsOwn, c.t.header.Own = true, uint32(c.data(make([]byte, maxOwn)).v)
	}
	return ptr(uint64(c.t.header.Own))
}

const landlockRuleNetPort = 2 // LANDLOCK_RULE_NET_PORT

// checkRoot lists the harness's root directory, which no policy that uses it
// grants. The errno is the evidence; whatever it is, the run goes on. The root is off by then: Landlock judges a mount
// that is being taken off by what it still hangs on.
func (c *compiler) checkRoot() {
	c.awaitRootOff()
	c.call(unix.SYS_OPENAT, reg(wire.RegOldRoot), c.str("."), imm(unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)).Probe = CheckRoot + 1
}

func (c *compiler) limits(settings []rlimit.Setting) {
	type rlimit64 struct{ cur, max uint64 }
	for _, s := range settings {
		c.call(unix.SYS_PRLIMIT64, imm(0), imm(int(s.Resource)), structure(c, rlimit64{s.Soft, s.Hard}), imm(0))
	}
}

// filter loads a seccomp program on the calling thread and, when flags ask for
// a listener, leaves its descriptor in RegFree.
func (c *compiler) filter(code []byte, flags int) { c.load(c.data(code), code, flags) }

// load loads the program that lies at an address.
func (c *compiler) load(at arg, code []byte, flags int) {
	c.awaitRootOff()
	prog := c.data(make([]byte, 16)) // struct sock_fprog: length, padding, pointer
	n := len(code) / 8
	c.t.blob[len(c.t.blob)-16] = byte(n)
	c.t.blob[len(c.t.blob)-15] = byte(n >> 8)
	c.call(wire.OpStore64, ptr(prog.v+8), at)
	if flags == 0 {
		// prctl, because filters that others have made, for bubblewrap, let the next
		// one be loaded so, and need not let seccomp(2) pass.
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_SECCOMP), imm(unix.SECCOMP_MODE_FILTER), prog)
		return
	}
	c.save(unix.SYS_SECCOMP, wire.RegFree, imm(unix.SECCOMP_SET_MODE_FILTER), imm(flags), prog)
}

// keeperFilter loads a program once the placeholders in it are numbers.
func (c *compiler) keeperFilter(code []byte) error {
	const instruction, equal = 8, 0x15 // struct sock_filter; JMP|JEQ|K
	at, found := c.data(code), [plan.NumberOwn]bool{}
	for i := 0; i < len(code); i += instruction {
		k := uint64(binary.LittleEndian.Uint32(code[i+4:]))
		for p := range plan.NumberOwn {
			if k != p.Placeholder() {
				continue
			}
			if binary.LittleEndian.Uint16(code[i:]) != equal {
				return fmt.Errorf("instruction %d of the keepers' filter does not compare", i/instruction)
			}
			c.call(wire.OpOwnPID, ptr(at.v+uint64(i)+4), imm(uint64(p)))
			found[p] = true
		}
	}
	if slices.Contains(found[:], false) {
		return errors.New("the keepers' filter leaves out one of them")
	}
	c.load(at, code, 0)
	return nil
}

func (c *compiler) supervisor(a plan.LoadSupervisor) error {
	if err := supervisor.Check([]byte(a.Rules)); err != nil {
		return err // the stage reads them without looking
	}
	c.filter(a.Program.Bytes(), supervisor.ListenerFlags)
	c.call(wire.OpListener, reg(wire.RegFree))
	c.t.connects = a.Given
	rules := c.data([]byte(a.Rules))
	c.t.header.Supervisor = wire.Span{Off: uint32(rules.v), Len: uint32(len(a.Rules))}
	return nil
}
