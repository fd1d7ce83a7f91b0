package stage

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// Registers of the mount steps.
const (
	regSource = wire.RegFree + iota
	regTree
	regDest
	regNew
)

// mountAttr is struct mount_attr of mount_setattr(2): what to set, then what to
// clear, the propagation and a user namespace.
type mountAttr struct {
	set         uint64
	_           uint64 // to clear
	propagation uint64
	_           uint64 // user namespace
}

const (
	attrsRead   = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrsWrite  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrsDevice = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// inRootHow opens a destination inside the new root. What lies there may be a
// tree that a hostile tool has written: a symbolic link on the way is refused,
// never followed (CVE-2026-87766 in bubblewrap).
var inRootHow = how{unix.O_PATH | unix.O_CLOEXEC, 0, unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}

// createHow is inRootHow for a file that is made where it does not exist. It
// stays open until a mount has been put on it.
var createHow = how{unix.O_CREAT | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC, 0o444, inRootHow.resolve}

func (c *compiler) lowerMount(action plan.Action) error {
	switch a := action.(type) {
	case plan.PrivateMounts:
		c.call(unix.SYS_MOUNT, imm(0), c.str("/"), imm(0), imm(unix.MS_REC|unix.MS_PRIVATE), imm(0))
	case plan.NewRoot:
		c.newRoot(a)
	case plan.KeepRoot:
		c.keepRoot()
	case plan.UnnamedTree:
		c.unnamedTree(a)
	case plan.Scratch:
		c.scratch(a)
	case plan.MakeDir:
		c.makeDir(a.Path, a.Mode)
	case plan.MakeLink:
		return c.makeLink(a)
	case plan.MakeFile:
		return c.makeFile(a)
	case plan.Bind:
		c.bind(a)
	case plan.Private:
		c.private(a)
	case plan.Hide:
		c.hide(a)
	case plan.Cover:
		c.coverFile(a)
	case plan.Overlay:
		c.overlay(a)
	case plan.ProbeOverlay:
		c.probeOverlay()
	case plan.Proc:
		c.proc(a)
	case plan.PTYs:
		c.ptys()
	case plan.Pivot:
		c.pivot()
	case plan.SealRoot:
		c.setattr(wire.RegRoot, "", unix.MOUNT_ATTR_RDONLY, 0)
	default:
		return c.lowerLayout(action)
	}
	return nil
}

func rel(p string) string {
	if p == "/" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

// filesystem creates a file system of the given type and leaves a mount of it
// in register.
func (c *compiler) filesystem(kind string, attrs, register int, options ...[2]string) {
	c.save(unix.SYS_FSOPEN, regNew, c.str(kind), imm(unix.FSOPEN_CLOEXEC))
	for _, o := range options {
		command, value := unix.FSCONFIG_SET_STRING, imm(0)
		if o[1] == "" {
			command = unix.FSCONFIG_SET_FLAG
		} else {
			value = c.str(o[1])
		}
		c.call(unix.SYS_FSCONFIG, reg(regNew), imm(command), c.str(o[0]), value, imm(0))
	}
	c.call(unix.SYS_FSCONFIG, reg(regNew), imm(unix.FSCONFIG_CMD_CREATE), imm(0), imm(0), imm(0))
	c.save(unix.SYS_FSMOUNT, register, reg(regNew), imm(unix.FSMOUNT_CLOEXEC), imm(attrs))
	c.close(regNew)
}

// makeDir makes a directory in the new root's own tmpfs, and its parents.
func (c *compiler) makeDir(p string, mode uint32) {
	if c.dirs[p] || p == "/" || c.onHost(p) {
		return
	}
	c.parents(p)
	c.dirs[p] = true
	c.call(unix.SYS_MKDIRAT, reg(wire.RegRoot), c.str(rel(p)), imm(mode)).Ignore[0] = uint16(unix.EEXIST)
}

func (c *compiler) parents(p string) {
	if dir := path.Dir(p); dir != "/" {
		c.makeDir(dir, 0o755)
	}
}

var errOnHost = errors.New("it would be made on the host: the path lies in a tree that the policy shows")

// onHost reports whether p lies in a tree of the host, where nothing must be
// created: what covers p most closely decides.
func (c *compiler) onHost(p string) bool {
	for ; ; p = path.Dir(p) {
		if host, ok := c.covers[p]; ok || p == "/" {
			return host
		}
	}
}

// point opens the mount point for p in regDest. It makes it first, unless p lies
// in a tree of the host, where it exists.
func (c *compiler) point(p string, dir bool) {
	switch {
	case c.onHost(p):
	case dir:
		c.makeDir(p, 0o755)
	default:
		c.parents(p)
		c.openDest(p, createHow)
		return
	}
	c.openDest(p, inRootHow)
}

func (c *compiler) openDest(p string, h how) {
	c.save(unix.SYS_OPENAT2, regDest, reg(wire.RegRoot), c.str(rel(p)), structure(c, h), imm(24))
}

// attach moves the mount in register to a path of the new root.
func (c *compiler) attach(register int, at string) {
	c.openDest(at, inRootHow)
	c.land(register)
}

// land moves the mount in register to where regDest is.
func (c *compiler) land(register int) {
	c.call(unix.SYS_MOVE_MOUNT, reg(register), c.str(""), reg(regDest), c.str(""),
		imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	c.close(regDest)
}

// clone makes a detached copy of what register (and a path below it) names.
func (c *compiler) clone(register int, at string, into int, recursive bool) {
	flags := unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_NO_AUTOMOUNT | unix.AT_SYMLINK_NOFOLLOW
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	c.save(unix.SYS_OPEN_TREE, into, reg(register), c.str(at), imm(flags))
}

func (c *compiler) setattr(register int, at string, set int, flags int) {
	c.call(unix.SYS_MOUNT_SETATTR, reg(register), c.str(at), imm(unix.AT_EMPTY_PATH|flags),
		structure(c, mountAttr{set: uint64(set)}), imm(32))
}

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
	c.close(regSource)
	recursive := 0
	if a.Dir {
		recursive = unix.AT_RECURSIVE
	}
	c.setattr(regTree, "", attrs, recursive)
	c.point(a.At, a.Dir)
	c.land(regTree)
	c.close(regTree)
	c.covers[a.At] = true
}

// slot makes a directory in the scratch.
func (c *compiler) slot(name string, mode uint32) {
	c.call(unix.SYS_MKDIRAT, reg(wire.RegScratch), c.str(name), imm(0o700))
	c.call(unix.SYS_FCHMODAT, reg(wire.RegScratch), c.str(name), imm(mode)) // whatever the umask
}

func (c *compiler) private(a plan.Private) {
	c.slot(a.Slot, a.Mode)
	c.clone(wire.RegScratch, a.Slot, regTree, false)
	c.point(a.At, true)
	c.land(regTree)
	c.close(regTree)
	c.covers[a.At] = false
	// What is put below is made in the scratch, through the mount.
	for d := range c.dirs {
		if strings.HasPrefix(d, a.At+"/") {
			delete(c.dirs, d)
		}
	}
}

// hide covers a path with an empty thing that nobody may open.
func (c *compiler) hide(a plan.Hide) {
	empty := "none"
	if a.Dir {
		empty = "empty"
	}
	c.clone(wire.RegScratch, empty, regTree, false)
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.openDest(a.Path, inRootHow)
	if a.Spare {
		last := c.last()
		last.Ignore, last.Skip = [3]uint16{uint16(unix.ENOENT), uint16(unix.ENOTDIR), uint16(unix.EACCES)}, 2 // land
	}
	c.land(regTree)
	c.close(regTree)
}

func (c *compiler) makeLink(a plan.MakeLink) error {
	if c.onHost(a.Path) {
		return errOnHost
	}
	c.parents(a.Path)
	c.call(unix.SYS_SYMLINKAT, c.str(a.Target), reg(wire.RegRoot), c.str(rel(a.Path)))
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
	c.close(regDest)
	return nil
}

// proc mounts a procfs of the new pid namespace. The kernel allows it in a user
// namespace only while a fully visible one is there too (mount_too_revealing),
// so it comes before the pivot. What belongs to the machine and not to a
// process is made read-only, which owning uid 0 outside cannot undo, or hidden.
func (c *compiler) proc(a plan.Proc) {
	// The scratch has hung here: it goes, and stays reachable by RegScratch alone.
	c.filesystem("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
	c.makeDir("/proc", 0o555)
	c.attach(regTree, "/proc")
	c.close(regTree)
	c.save(unix.SYS_OPENAT, wire.RegProc, reg(wire.RegRoot), c.str("proc"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	c.quotas(a.Quotas)
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "dynamic_debug", "mtrr"} {
		c.cover(name, true)
	}
	hidden := plan.HiddenProc
	if c.id.UID != 0 {
		hidden = hidden[:len(hidden)-plan.RootsProc]
	}
	for _, name := range hidden {
		c.cover(name, false)
	}
}

// quotas sets the limits of init's namespaces. That on process ids limits its
// processes: RLIMIT_NPROC does not bind uid 0 (copy_process exempts INIT_USER). It
// belongs to the pid namespace since Linux 6.14; before, it is the whole machine's,
// and must not be touched. Those below sys/user belong to the user namespace, and
// count what is in the nested ones too (namespaces(7)).
func (c *compiler) quotas(q plan.Quotas) {
	c.sysctl("kernel/pid_max", q.PIDs)
	c.sysctl("user/max_user_namespaces", q.Users)
	c.sysctl("user/max_inotify_instances", q.Instances)
	c.sysctl("user/max_inotify_watches", q.Watches)
}

// sysctl writes a number to a file of /proc/sys that there may not be; 0: nothing.
func (c *compiler) sysctl(name string, n int) {
	if n == 0 {
		return
	}
	text := fmt.Sprint(n)
	c.save(unix.SYS_OPENAT, regNew, reg(wire.RegProc), c.str("sys/"+name), imm(unix.O_WRONLY|unix.O_CLOEXEC))
	if strings.HasPrefix(name, "user/max_inotify") {
		c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 2 // CONFIG_INOTIFY_USER
	}
	c.call(unix.SYS_WRITE, reg(regNew), c.str(text), imm(len(text)))
	c.close(regNew)
}

// cover makes an entry of /proc read-only, or hides it. An entry that this
// kernel does not have needs neither, and is asked for first: closing a mount
// that was made in vain waits until no processor can still see it
// (dissolve_on_fput, namespace_unlock), some 50 us.
func (c *compiler) cover(name string, readOnly bool) {
	if readOnly {
		c.clone(wire.RegProc, name, regTree, true)
		c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 3
		c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
		c.call(unix.SYS_MOVE_MOUNT, reg(regTree), c.str(""), reg(wire.RegProc), c.str(name), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.close(regTree)
		return
	}
	c.save(unix.SYS_OPENAT, regDest, reg(wire.RegProc), c.str(name), imm(unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC))
	c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 5
	c.clone(wire.RegScratch, "none", regTree, false)
	c.setattr(regTree, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.call(unix.SYS_MOVE_MOUNT, reg(regTree), c.str(""), reg(regDest), c.str(""), imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	c.close(regTree)
	c.close(regDest)
}

// ptys mounts a devpts of its own, so that no terminal of the host is
// reachable by number.
func (c *compiler) ptys() {
	c.filesystem("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, regTree, [2]string{"ptmxmode", "0666"}, [2]string{"mode", "0620"})
	c.makeDir("/dev/pts", 0o755)
	c.attach(regTree, "/dev/pts")
	c.close(regTree)
}
