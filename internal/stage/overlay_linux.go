package stage

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// An overlay's directories are opened here, as every source is: without following
// a symbolic link, which a tool may have put there since the sandbox was made.
// overlayfs takes them as text and looks that up with links followed, so the text
// is the descriptor's number, relative to /proc/self/fd, which is init's working
// directory while it makes an overlay. That /proc is the harness's: init still has
// the harness's root directory here. (Descriptors themselves, FSCONFIG_SET_FD, are
// taken since Linux 6.13.)

// overlayMount is an overlay that is being made.
type overlayMount struct {
	c       *compiler
	options []layerOption
	held    int  // how many registers from regLayer on hold directories
	atFDs   bool // the working directory is /proc/self/fd already
	into    int  // the register that the mount is left in
	spare   bool // if the lower directory cannot be used, the register holds no descriptor
}

// A layerOption is an option of overlayfs whose value is a text in the blob.
type layerOption struct {
	name  string
	value arg
}

// maxLayers leaves two registers, for the upper and the working directory.
const maxLayers = wire.RegGiven - regLayer - 2

// dirHow opens a directory as pathHow opens anything.
var dirHow = how{pathHow.flags | unix.O_DIRECTORY, 0, pathHow.resolve}

// numbers reserves the text that n descriptors' numbers are written to.
func (c *compiler) numbers(n int) arg {
	const digits = 20 // with the colon, of any number
	return c.data(make([]byte, n*digits+1))
}

// hold opens a directory below the one in register and appends its number to text.
func (l *overlayMount) hold(register int, at string, text arg) {
	into := regLayer + l.held
	l.held++
	l.c.save(unix.SYS_OPENAT2, into, reg(register), l.c.str(rel(at)), structure(l.c, dirHow), imm(24))
	l.c.call(wire.OpNumber, reg(into), text)
}

func (l *overlayMount) closeDirs() {
	l.held--
	l.c.closeLater(regLayer + l.held)
}

// writes opens the upper and the working directory.
func (l *overlayMount) writes(register int, upper, work string) {
	for _, o := range [][2]string{{"upperdir", upper}, {"workdir", work}} {
		text := l.c.numbers(1)
		l.hold(register, o[1], text)
		l.options = append(l.options, layerOption{o[0], text})
	}
}

// scratch makes the upper and the working directory in the scratch.
func (l *overlayMount) scratch(slot string) {
	l.c.slot(slot, 0o700)
	l.c.slot(slot+"/up", 0o755)
	l.c.slot(slot+"/work", 0o700)
	l.writes(wire.RegScratch, slot+"/up", slot+"/work")
}

// mount leaves a mount of the overlay in l.into; the top layer comes first.
// Layers that are too many for the registers are given one by one, as Linux 6.8
// takes them.
func (l *overlayMount) mount(register int, layers []string) {
	c := l.c
	if !l.atFDs {
		c.call(unix.SYS_CHDIR, c.str("/proc/self/fd"))
	}
	c.save(unix.SYS_FSOPEN, regNew, c.str("overlay"), imm(unix.FSOPEN_CLOEXEC))
	if len(layers) <= maxLayers {
		text := c.numbers(len(layers))
		for _, p := range layers {
			l.hold(register, p, text)
		}
		l.options = append(l.options, layerOption{"lowerdir", text})
	} else {
		for _, p := range layers {
			text := c.numbers(1)
			l.hold(register, p, text)
			l.set(layerOption{"lowerdir+", text})
			l.closeDirs()
		}
	}
	for _, o := range l.options {
		l.set(o)
	}
	c.call(unix.SYS_FSCONFIG, reg(regNew), imm(unix.FSCONFIG_SET_FLAG), c.str("userxattr"), imm(0), imm(0))
	c.call(unix.SYS_FSCONFIG, reg(regNew), imm(unix.FSCONFIG_CMD_CREATE), imm(0), imm(0), imm(0))
	if l.spare {
		c.last().Ignore[0] = uint16(unix.EINVAL)
	}
	c.save(unix.SYS_FSMOUNT, l.into, reg(regNew), imm(unix.FSMOUNT_CLOEXEC), imm(attrsWrite))
	if l.spare {
		c.last().Ignore[0] = uint16(unix.EINVAL)
	}
	c.closeLater(regNew)
	for l.held > 0 {
		l.closeDirs()
	}
}

func (l *overlayMount) set(o layerOption) {
	l.c.call(unix.SYS_FSCONFIG, reg(regNew), imm(unix.FSCONFIG_SET_STRING), l.c.str(o.name), o.value, imm(0))
}

// overlay shows a directory of the host with its upper layer in the scratch.
func (c *compiler) overlay(a plan.Overlay) {
	if a.Of == "" {
		c.overlayOf(wire.RegOldRoot, a)
		return
	}
	c.partOf(a)
	c.attachOverlay(a.At)
}

// sharedOverlay makes an overlay and puts it where parts can be cloned from it (only what is attached can be cloned before
// Linux 6.15), and from where it goes with the harness's root: on the /proc there, in which init has its working directory from
// now on. The kernel refuses an overlay of a directory with a mount below it that a user namespace may not take off (EINVAL:
// clone_private_mount, has_locked_children): then each part gets a separate overlay.
func (c *compiler) sharedOverlay(a plan.SharedOverlay) {
	c.save(unix.SYS_OPENAT2, regViewed, reg(wire.RegOldRoot), c.str(rel(a.Lower)), structure(c, dirHow), imm(24))
	l := &overlayMount{c: c, into: regView, spare: true}
	l.scratch(a.Slot)
	l.mount(wire.RegOldRoot, []string{a.Lower})
	c.call(unix.SYS_MOVE_MOUNT, reg(regView), c.str(""), reg(wire.RegOldRoot), c.str("proc"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.last().Ignore[0] = uint16(unix.EBADF)
	c.viewed = true
}

// partHow opens a directory below another, in the same mount.
var partHow = how{dirHow.flags, 0, dirHow.resolve | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV}

// partOf leaves a part of the shared overlay in regTree. An overlay shows what lies under a mount on its lower directory, not
// what is mounted: where a mount lies on the way, the directory gets a separate overlay.
func (c *compiler) partOf(a plan.Overlay) {
	below := c.str(strings.TrimPrefix(a.Lower, a.Of+"/"))
	c.save(unix.SYS_OPENAT2, regSource, reg(regViewed), below, structure(c, partHow), imm(24))
	mounted := c.unless(unix.EXDEV)
	c.close(regSource)
	c.save(unix.SYS_OPENAT2, regSource, reg(regView), below, structure(c, partHow), imm(24))
	noView := c.unless(unix.EBADF)
	c.clone(regSource, "", regTree, false)
	c.close(regSource)
	c.call(unix.SYS_CLOSE, imm(-1)) // fails: the overlay of its own is left out
	done := c.unless(unix.EBADF)
	mounted()
	noView()
	l := &overlayMount{c: c, into: regTree, atFDs: true}
	l.scratch(a.Slot)
	l.mount(wire.RegOldRoot, []string{a.Lower})
	done()
}

func (c *compiler) overlayOf(register int, a plan.Overlay) {
	l := &overlayMount{c: c, into: regTree, atFDs: c.viewed}
	l.scratch(a.Slot)
	l.mount(register, []string{a.Lower})
	c.attachOverlay(a.At)
}

// attachOverlay puts the overlay in regTree at a path of the new root.
func (c *compiler) attachOverlay(at string) {
	c.ruleOf(regTree, at)
	c.attach(regTree, at, true)
	c.mounted[at] = true
}

// putOverlay mounts an overlay of an explicit layout.
func (c *compiler) putOverlay(a plan.PutOverlay) {
	l := &overlayMount{c: c, into: regTree}
	switch {
	case a.Upper != "":
		l.writes(wire.RegOldRoot, a.Upper, a.Work)
	case a.Slot != "":
		l.scratch(a.Slot)
	}
	layers := slices.Clone(a.Layers)
	slices.Reverse(layers) // the top comes first
	l.mount(wire.RegOldRoot, layers)
	c.put(wire.MakeDir, a.At, 0o755, 0o755, false)
}

// probeOverlay finds out whether one can be mounted.
func (c *compiler) probeOverlay() {
	c.slot("lower", 0o755)
	c.overlayOf(wire.RegScratch, plan.Overlay{Lower: "lower", At: "/overlay", Slot: "probe"})
	c.forgiveOverlay()
}

// forgiveOverlay makes the overlay just lowered a probe: the call that creates
// it records its errno, and those that need its mount may fail.
func (c *compiler) forgiveOverlay() {
	list := c.t.ops[c.process]
	failed := false
	for i := range list {
		op := &list[i]
		if op.Step != c.step {
			continue
		}
		switch int(op.Nr) {
		case unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_MOVE_MOUNT, wire.OpCloseLater:
			op.Probe = probeIgnored + 1
			if op.Nr == unix.SYS_FSMOUNT {
				op.Probe = overlaySlot + 1
				failed = true
			}
		}
	}
	if !failed {
		panic("stage: an overlay without fsmount")
	}
}
