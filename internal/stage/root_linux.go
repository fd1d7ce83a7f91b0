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
	options := [][2]string{{"mode", "0755"}, {"size", "16m"}}
	if a.Free {
		options = options[:1]
	}
	c.filesystem("tmpfs", attrsWrite, wire.RegRoot, options...)
	c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegRoot), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// scratch attaches the private tmpfs at a directory of the new root that is
// covered again before the tool runs; RegScratch names it.
func (c *compiler) scratch(a plan.Scratch) {
	options := [][2]string{{"mode", "0755"}}
	if a.Bytes > 0 {
		options = append(options, [2]string{"size", fmt.Sprint(a.Bytes)})
	}
	c.filesystem("tmpfs", attrsWrite, wire.RegScratch, options...)
	if a.Under {
		c.call(unix.SYS_MOVE_MOUNT, reg(wire.RegScratch), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.layers++
		return
	}
	c.makeDir(scratchAt, 0o700)
	c.attach(wire.RegScratch, scratchAt)
	c.call(unix.SYS_MKDIRAT, reg(wire.RegScratch), c.str("empty"), imm(0))
	c.save(unix.SYS_OPENAT, regNew, reg(wire.RegScratch), c.str("none"), imm(unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC), imm(0))
	c.close(regNew)
}

// scratchAt is where the scratch hangs while the root is built. Init detaches
// it from there at the end (see private): what the tool sees are the
// directories taken from it.
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

// pivot makes the new root the namespace's and takes off what was there.
func (c *compiler) pivot() {
	if c.viewed {
		c.close(regView)
		c.last().Ignore[0] = uint16(unix.EBADF)
		c.close(regViewed)
	}
	c.call(unix.SYS_FCHDIR, reg(wire.RegRoot))
	c.call(unix.SYS_PIVOT_ROOT, c.str("."), c.str("."))
	c.call(unix.SYS_FCHDIR, reg(wire.RegOldRoot))
	// "." is what is mounted last on the harness's root (LOOKUP_MOUNTPOINT): the
	// layers that were left there under the new root come off first, one by one.
	for range c.layers + 1 {
		c.call(unix.SYS_UMOUNT2, c.str("."), imm(unix.MNT_DETACH))
	}
	c.call(unix.SYS_CHDIR, c.str("/"))
	c.save(unix.SYS_OPENAT, wire.RegMounts, reg(wire.RegProc), c.str("self/ns/mnt"), imm(unix.O_RDONLY|unix.O_CLOEXEC))
}
