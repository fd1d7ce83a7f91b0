package stage

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

var errOnHost = errors.New("it would be made on the host: the path lies in a tree that the policy shows")

func (c *compiler) bind(a plan.Bind) {
	attrs := attrsRead
	switch {
	case a.Device && !a.Write:
		attrs = attrsDevice | unix.MOUNT_ATTR_RDONLY // of the inode: data passes all the same
	case a.Device:
		attrs = attrsDevice
	case a.Write:
		attrs = attrsWrite
	}
	c.save(unix.SYS_OPENAT2, regSource, reg(wire.RegOldRoot), c.str(rel(a.Source)), structure(c, pathHow), imm(24))
	c.clone(regSource, "", regTree, a.Dir)
	if a.At == a.Source {
		c.ruleOf(regSource, a.At)
	}
	c.closeLater(regSource)
	recursive := 0
	if a.Dir {
		recursive = unix.AT_RECURSIVE
	}
	c.setattr(regTree, "", attrs, recursive)
	c.attach(regTree, a.At, a.Dir)
	c.mounted[a.At] = true
}

func (c *compiler) private(a plan.Private) {
	c.slot(a.Slot, a.Mode)
	c.clone(wire.RegScratch, a.Slot, regTree, false)
	c.ruleOf(regTree, a.At)
	c.attach(regTree, a.At, true)
	c.mounted[a.At] = false
	// What is put below is made in the scratch, through the mount.
	for d := range c.dirs {
		if strings.HasPrefix(d, a.At+"/") {
			delete(c.dirs, d)
		}
	}
}

// hide covers a path with an empty file or directory that no mode lets be opened.
func (c *compiler) hide(a plan.Hide) {
	empty := emptyFile
	if a.Dir {
		empty = emptyDir
	}
	c.clone(regBlank, empty, regTree, false)
	switch over := c.call(wire.OpCover, reg(regTree), c.str(rel(a.Path))); {
	case a.Spare:
		over.Ignore = [3]uint16{uint16(unix.ENOENT), uint16(unix.ENOTDIR), uint16(unix.EACCES)}
	case a.In != plan.FileID{}:
		over.Ignore[0], over.Skip = uint16(unix.ENOENT), 1
	}
	if !a.Spare && a.In != (plan.FileID{}) {
		c.call(wire.OpErrno, structure(c, -int32(unix.ECANCELED))) // it is covered; the rest is for what is gone
		c.last().Ignore[0], c.last().Skip = uint16(unix.ECANCELED), 5
		// And from there: the directory can have been away a moment ago.
		c.save(unix.SYS_OPENAT2, regDest, reg(wire.RegRoot), c.str(rel(path.Dir(a.Path))), structure(c, inRootHow), imm(24))
		c.call(wire.OpIsFile, reg(regDest), structure(c, a.In))
		c.call(unix.SYS_FACCESSAT, reg(regDest), c.str(path.Base(a.Path)), imm(unix.F_OK))
		c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 1
		c.call(wire.OpErrno, structure(c, -int32(unix.ESTALE)))
		c.closeLater(regDest)
	}
	c.closeLater(regTree)
}

func (c *compiler) makeLink(a plan.MakeLink) error {
	if c.onHost(a.Path) {
		return errOnHost
	}
	c.parents(a.Path)
	c.call(unix.SYS_SYMLINKAT, c.str(a.Target), reg(wire.RegRoot), c.str(rel(a.Path)))
	c.linked[a.Path] = true
	return nil
}

func (c *compiler) makeFile(a plan.MakeFile) error {
	if c.onHost(a.Path) {
		return errOnHost
	}
	c.parents(a.Path)
	c.save(unix.SYS_OPENAT, regDest, reg(wire.RegRoot), c.str(rel(a.Path)),
		imm(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC), imm(a.Mode))
	if a.Data != "" {
		c.call(unix.SYS_WRITE, reg(regDest), c.str(a.Data), imm(len(a.Data)))
	}
	c.writeGiven(a.Given)
	c.ruleOf(regDest, a.Path)
	c.close(regDest)
	return nil
}

// proc mounts a procfs of the new pid namespace. The kernel allows it in a user
// namespace only while a fully visible one is there too (mount_too_revealing),
// so it comes before the pivot. What belongs to the machine and not to a
// process is made read-only, which owning uid 0 outside cannot undo, or hidden.
func (c *compiler) proc(a plan.Proc) {
	if a.Shared {
		c.sharedProc()
		return
	}
	// The scratch has hung here: it goes, and stays reachable by RegScratch alone.
	c.filesystem("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
	c.makeDir("/proc", 0o555)
	c.attach(regTree, "/proc", true)
	c.save(unix.SYS_OPENAT, wire.RegProc, reg(wire.RegRoot), c.str("proc"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	c.ruleOf(wire.RegProc, "/proc")
	c.quotas(a.Quotas)
	if c.settings = a.Network; c.settings {
		c.save(unix.SYS_OPENAT, regSettings, reg(wire.RegProc), c.str("sys"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
		c.last().Ignore[0] = uint16(unix.ENOENT)
	}
	if a.Uncovered {
		return
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "dynamic_debug", "mtrr"} {
		c.sealProc(name)
	}
	c.hideProc()
}

// sharedProc binds the harness's procfs, with all that covers parts of it: in this user namespace the kernel lets no bind leave a cover
// out (has_locked_children in fs/namespace.c), nor take one off. What plan.HiddenProc names is hidden as in a new one.
func (c *compiler) sharedProc() {
	c.save(unix.SYS_OPENAT2, regSource, reg(wire.RegOldRoot), c.str("proc"), structure(c, pathHow), imm(24))
	c.clone(regSource, "", regTree, true)
	c.ruleOf(regSource, "/proc")
	c.closeLater(regSource)
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, unix.AT_RECURSIVE)
	c.makeDir("/proc", 0o555)
	c.attach(regTree, "/proc", true)
	c.hideProc()
}

// sealProc makes an entry of /proc read-only. An entry that this kernel does not have is left out.
func (c *compiler) sealProc(name string) {
	c.clone(wire.RegProc, name, regTree, true)
	c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 3
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.call(unix.SYS_MOVE_MOUNT, reg(regTree), c.str(""), reg(wire.RegProc), c.str(name), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.closeLater(regTree)
}

// hideProc covers the files of /proc that are hidden, each by one mount(2), which looks for the file before it makes the mount: closing a
// mount that was made in vain waits until no processor can still see it (dissolve_on_fput, namespace_unlock), some 50 us. The
// procfs covers the scratch, from which init finds it by "..".
func (c *compiler) hideProc() {
	hidden := plan.HiddenProc
	if c.id.UID != 0 {
		hidden = hidden[:len(hidden)-plan.RootsProc]
	}
	c.call(unix.SYS_FCHDIR, reg(regBlank))
	c.call(unix.SYS_FACCESSAT, imm(atCwd), c.str(".."+scratchAt+"/self"), imm(unix.F_OK)) // it is there: ENOENT is about the files
	for _, name := range hidden {
		c.call(unix.SYS_MOUNT, c.str(emptyFile), c.str(".."+scratchAt+"/"+name), imm(0), imm(unix.MS_BIND), imm(0)).Ignore[0] = uint16(unix.ENOENT)
	}
	c.call(unix.SYS_CHDIR, c.str("/"))
}

// Where the file systems lie that every new root with a /dev has.
const ptysAt, queuesAt = "/dev/pts", "/dev/mqueue"

// mostTerminals is how many a sandbox has at one time. The kernel counts the machine's in one number, whatever their file system
// (devpts_new_index in fs/devpts/inode.c), and by default keeps 1,024 of 4,096 for the first of these (kernel.pty.reserve).
const mostTerminals = 256

// devpts makes a new devpts in regTree.
func (c *compiler) devpts() {
	c.filesystem("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, regTree,
		[2]string{"ptmxmode", "0666"}, [2]string{"mode", "0620"}, [2]string{"max", strconv.Itoa(mostTerminals)})
}

// ptys mounts a new devpts, so that no terminal of the host is
// reachable by number.
func (c *compiler) ptys() {
	c.devpts()
	c.ruleOf(regTree, ptysAt)
	c.attach(regTree, ptysAt, true)
}

// queues mounts the message queues. A kernel without them (CONFIG_POSIX_MQUEUE) has no such file system.
func (c *compiler) queues() {
	c.beginRuleset() // before what may be left out
	c.filesystem("mqueue", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
	list := c.t.ops[c.process]
	first := len(list) - 4 // fsopen, fsconfig, fsmount, close
	c.ruleOf(regTree, queuesAt)
	c.attach(regTree, queuesAt, true)
	list = c.t.ops[c.process]
	list[first].Ignore[0], list[first].Skip = uint16(unix.ENODEV), uint8(len(list)-first-1)
}

// coverFile puts a mount of a file that has been made in the new root over another.
func (c *compiler) coverFile(a plan.Cover) {
	c.clone(wire.RegRoot, rel(a.By), regTree, false)
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.cover(regTree, a.Path)
	c.closeLater(regTree)
}
