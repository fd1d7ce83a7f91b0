package stage

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// newRoot attaches an empty tmpfs over the harness's root: it has to be in the
// namespace for mounts to be put on it (detached targets came with Linux 6.15).
// RegOldRoot still names what lies beneath.
func (c *compiler) newRoot(a plan.NewRoot) {
	c.save(unix.SYS_OPENAT, wire.RegOldRoot, imm(atCwd), c.str("/"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	if a.Host {
		c.clone(wire.RegOldRoot, "", wire.RegRoot, true)
		attrs := attrsRead
		if a.Write {
			attrs = attrsWrite
		}
		c.setattr(wire.RegRoot, "", attrs, unix.AT_RECURSIVE)
		c.mounted["/"] = true
		c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegRoot), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		return
	}
	c.rooted = true
	if a.Private {
		c.privateRoot()
		return
	}
	options := [][2]string{{"mode", "0755"}, {"size", "16m"}}
	if a.Free {
		options = options[:1]
	}
	c.filesystem("tmpfs", attrsWrite, wire.RegRoot, options...)
	c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegRoot), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// privateRoot makes the private tmpfs, and the root of a directory in it. Before Linux 6.15 only of what is attached a mount can be cloned: the tmpfs lies
// on the harness's /proc, in this mount namespace, until the new root has a place for it.
func (c *compiler) privateRoot() {
	c.filesystem("tmpfs", attrsWrite, wire.RegScratch, [2]string{"mode", "0755"}, shareOfMemory)
	c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegScratch), c.str(""), reg(wire.RegOldRoot), c.str(rel(scratchAt)), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.slot(rootDir, 0o755)
	c.clone(wire.RegScratch, rootDir, wire.RegRoot, false)
	c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegRoot), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.hangScratch()
}

// scratch attaches the private tmpfs at a directory of the new root that is
// covered again before the tool runs; RegScratch names it.
func (c *compiler) scratch(a plan.Scratch) {
	options := [][2]string{{"mode", "0755"}, shareOfMemory}
	if a.Bytes > 0 {
		options = options[:1]
		// An empty file takes about a KiB of the kernel's memory, and nothing of the size (tmpfs(5)).
		options = append(options, [2]string{"size", fmt.Sprint(a.Bytes)}, [2]string{"nr_inodes", fmt.Sprint(max(leastFiles, a.Bytes/bytesAFile))})
	}
	c.filesystem("tmpfs", attrsWrite, wire.RegScratch, options...)
	if a.Under {
		c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegScratch), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.layers++
		return
	}
	c.hangScratch()
}

// shareOfMemory limits a scratch without a limit: several sandboxes can be full at once, and the memory of a tmpfs is freed by none of the
// processes that the kernel kills for want of it.
var shareOfMemory = [2]string{"size", "12%"}

// A limited scratch has a file for each so many bytes, twice as many as one without a limit, and so many at the least.
const bytesAFile, leastFiles = 2048, 1024

// hangScratch attaches the scratch in the new root, and makes in it what hidden paths are covered with.
func (c *compiler) hangScratch() {
	c.makeDir(scratchAt, 0o700)
	c.cover(wire.RegScratch, scratchAt)
	c.call(unix.SYS_MKDIRAT, reg(wire.RegScratch), c.str(emptyDir), imm(0))
	c.call(unix.SYS_MKNODAT, reg(wire.RegScratch), c.str(emptyFile), imm(unix.S_IFREG), imm(0))
	// On it lies a mount of it that nothing can be written to or executed from. What is cloned from that is so as well.
	c.clone(wire.RegScratch, "", regBlank, false)
	c.setattr(regBlank, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, 0)
	c.call(unix.SYS_MOVE_MOUNT, reg(regBlank), c.str(""), reg(wire.RegScratch), c.str(""), imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	c.blank = c.step + 1
}

// An empty directory and an empty file of the scratch, which no mode lets be opened: they cover what is hidden. The root's directory.
const emptyDir, emptyFile, rootDir = "empty", "none", "root"

// awaitRootOff lets the tool's process wait until the harness's root is off: before its first filter, which need not allow that. What the
// process does until then is done while the root is taken off.
func (c *compiler) awaitRootOff() {
	if c.detach == 0 || c.awaited || c.process != wire.InTool {
		return
	}
	step := c.step
	c.step, c.awaited = c.detach-1, true
	c.call(wire.OpRootOff)
	c.step = step
}

// endInit is init's last ops: the tool is executed when the harness's root is off.
func (c *compiler) endInit() {
	c.process = wire.InInit
	if c.blank > 0 {
		c.step = c.blank - 1
		c.close(regBlank)
	}
	if c.detach > 0 {
		c.step = c.detach - 1
		later := 0
		if c.awaited {
			later = 1
		}
		c.call(wire.OpDetached, imm(later))
	}
}

// scratchAt is where the scratch hangs while the root is built. It stays there, below the /proc that covers it: what the tool can
// reach are the directories taken from it.
const scratchAt = "/proc"

// keepRoot takes the harness's root for the sandbox's.
func (c *compiler) keepRoot() {
	c.save(unix.SYS_OPENAT, wire.RegRoot, imm(atCwd), c.str("/"), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	c.mounted["/"] = true
}

// unnamedTree puts another tree in the place of the harness's root; see plan.
func (c *compiler) unnamedTree(a plan.UnnamedTree) {
	c.close(wire.RegOldRoot)
	if a.Fresh {
		c.filesystem("tmpfs", attrsWrite, wire.RegOldRoot)
		return
	}
	c.clone(wire.RegScratch, "", wire.RegOldRoot, false)
}

// pivot makes the new root the namespace's and takes off what was there; or it makes it the root of init and its children by chroot(2), where it
// lies on the namespace's, as a system's lies on its initramfs. ".." leads no further up then, whatever the process's root is: each mount on the
// way lies on the root of the one below it (choose_mountpoint in fs/namei.c). So does setns(2) lead to it (mntns_install in fs/namespace.c); and
// in a mount namespace of a lesser user namespace it comes off neither by umount2(2) nor by pivot_root(2) (MNT_LOCKED).
func (c *compiler) pivot(a plan.Pivot) {
	if c.viewed {
		c.close(regView)
		c.last().Ignore[0] = uint16(unix.EBADF)
		c.close(regViewed)
	}
	switch {
	case a.Chroot:
		c.call(unix.SYS_FCHDIR, reg(wire.RegRoot))
		c.call(unix.SYS_CHROOT, c.str("."))
	case c.blank > 0:
		c.pivotToScratch()
	default:
		c.call(unix.SYS_FCHDIR, reg(wire.RegRoot))
		c.call(unix.SYS_PIVOT_ROOT, c.str("."), c.str("."))
		c.call(unix.SYS_FCHDIR, reg(wire.RegOldRoot))
		// "." is what is mounted last on the harness's root (LOOKUP_MOUNTPOINT): the
		// layers that were left there under the new root come off first, one by one.
		for range c.layers + 1 {
			c.call(unix.SYS_UMOUNT2, c.str("."), imm(unix.MNT_DETACH))
		}
	}
	c.call(unix.SYS_CHDIR, c.str("/"))
	if c.blank > 0 {
		c.save(unix.SYS_OPENAT, wire.RegMounts, reg(wire.RegScratch), c.str("."), imm(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	} else {
		c.save(unix.SYS_OPENAT, wire.RegMounts, reg(wire.RegProc), c.str("self/ns/mnt"), imm(unix.O_RDONLY|unix.O_CLOEXEC))
	}
}

// pivotToScratch leaves the harness's root in a directory of the scratch, to which no path leads, and has it taken off beside init. On the new
// root itself, where pivot_root(".", ".") leaves it, init counts as chrooted as long as it is there, and may make no user
// namespace (current_chrooted in fs/namespace.c).
func (c *compiler) pivotToScratch() {
	c.call(unix.SYS_FCHDIR, reg(wire.RegScratch))
	c.call(unix.SYS_PIVOT_ROOT, c.str(".."), c.str(emptyDir))
	c.call(wire.OpDetach, reg(wire.RegOldRoot))
	c.detach = c.step + 1
}
