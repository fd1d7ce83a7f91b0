package stage

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// floor puts an empty tmpfs over the harness's root. It is unbindable, so that
// binding the harness's root, with what is mounted there, does not bring along
// what is being built on it (copy_tree leaves such mounts out).
func (c *compiler) floor() {
	c.filesystem("tmpfs", attrsWrite, regTree)
	c.call(unix.SYS_MOUNT_SETATTR, reg(regTree), c.str(""), imm(unix.AT_EMPTY_PATH), structure(c, mountAttr{propagation: unix.MS_UNBINDABLE}), imm(32))
	c.call(unix.SYS_MOVE_MOUNT, reg(regTree), c.str(""), imm(atCwd), c.str("/"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.close(regTree)
	c.layers++
}

// put moves the mount in regTree to a path. One on the root itself is the root
// from now on: what is put there lies on it, not under it.
func (c *compiler) put(what uint32, at string, mode, like uint32, plain bool) {
	c.find(what, at, mode, like, plain)
	c.moveMount(regTree)
	if at == "/" {
		c.call(unix.SYS_DUP3, reg(regTree), reg(wire.RegRoot), imm(unix.O_CLOEXEC))
		c.layers++
	}
	c.close(regTree)
}

func (c *compiler) putBind(a plan.PutBind) {
	c.save(unix.SYS_OPENAT2, regSource, reg(wire.RegOldRoot), c.str(rel(a.Source)), structure(c, pathHow), imm(24))
	if a.Is != (plan.FileID{}) {
		c.call(wire.OpIsFile, reg(regSource), structure(c, a.Is))
	}
	c.clone(regSource, "", regTree, a.Dir)
	c.close(regSource)
	attrs := unix.MOUNT_ATTR_NOSUID
	if !a.Device {
		attrs |= unix.MOUNT_ATTR_NODEV
	}
	if !a.Write {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	if a.NoExec {
		attrs |= unix.MOUNT_ATTR_NOEXEC
	}
	recursive := 0
	if a.Dir {
		recursive = unix.AT_RECURSIVE
	}
	c.setattr(regTree, "", attrs, recursive)
	if a.Dir {
		c.put(wire.MakeDir, a.At, 0o755, 0o755, a.Plain)
	} else {
		c.put(wire.MakeFile, a.At, 0o444, 0o755, a.Plain)
	}
}

func (c *compiler) putTmpfs(a plan.PutTmpfs) {
	options := [][2]string{{"mode", fmt.Sprintf("%#o", a.Mode)}}
	if a.Bytes > 0 {
		options = append(options, [2]string{"size", fmt.Sprint(a.Bytes)})
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if a.NoExec {
		attrs |= unix.MOUNT_ATTR_NOEXEC
	}
	c.filesystem("tmpfs", attrs, regTree, options...)
	c.put(wire.MakeDir, a.At, 0o755, a.Mode, false)
}

// putData makes the file in the scratch, takes a mount of it, and removes its
// name.
func (c *compiler) putData(a plan.PutData) {
	c.save(unix.SYS_OPENAT, regDest, reg(wire.RegScratch), c.str(a.Slot), imm(unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC), imm(0o600))
	c.writeAll(a.Data)
	c.call(unix.SYS_FCHMOD, reg(regDest), imm(a.Mode))
	c.close(regDest)
	c.clone(wire.RegScratch, a.Slot, regTree, false)
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if !a.Write {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	c.setattr(regTree, "", attrs, 0)
	c.put(wire.MakeFile, a.At, 0o444, a.Mode, false)
	c.call(unix.SYS_UNLINKAT, reg(wire.RegScratch), c.str(a.Slot), imm(0))
}

// writeAll writes to regDest. One write(2) takes at most 0x7ffff000 bytes; to a
// file of a tmpfs with room it writes all it takes.
func (c *compiler) writeAll(data string) {
	if data != "" {
		c.call(unix.SYS_WRITE, reg(regDest), c.data([]byte(data)), imm(len(data)))
	}
}

// putProc mounts a procfs of the pid namespace that init is in.
func (c *compiler) putProc(a plan.PutProc) {
	if a.New {
		c.filesystem("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
	} else {
		c.clone(wire.RegOldRoot, "proc", regTree, true)
		c.setattr(regTree, "", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, unix.AT_RECURSIVE)
	}
	c.find(wire.MakeDir, a.At, 0o755, 0o755, false)
	c.moveMount(regTree)
	if a.Cover {
		c.coverAll(regTree)
	}
	c.close(regTree)
}

// coverAll makes read-only, in the procfs in register, what is the machine's and
// not a process's.
func (c *compiler) coverAll(register int) {
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"} {
		c.clone(register, name, regNew, true)
		c.last().Ignore[0], c.last().Skip = uint16(unix.ENOENT), 3
		c.setattr(regNew, "", attrsRead|unix.MOUNT_ATTR_NOEXEC, unix.AT_RECURSIVE)
		c.call(unix.SYS_MOVE_MOUNT, reg(regNew), c.str(""), reg(register), c.str(name), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.close(regNew)
	}
}

// putDev makes a /dev. No other process can reach its tmpfs while it is filled.
func (c *compiler) putDev(a plan.PutDev) {
	c.filesystem("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, regTree, [2]string{"mode", "0755"})
	c.find(wire.MakeDir, a.At, 0o755, 0o755, false)
	c.moveMount(regTree)
	c.save(unix.SYS_FCNTL, regDev, reg(regTree), imm(unix.F_DUPFD_CLOEXEC), imm(3))
	c.close(regTree)
	for _, name := range a.Devices {
		c.device("dev/"+name, name)
	}
	if a.Console != "" {
		c.device(rel(a.Console), "console")
	}
	for _, l := range [][2]string{
		{"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
		{"fd", "/proc/self/fd"}, {"core", "/proc/kcore"}, {"ptmx", "pts/ptmx"},
	} {
		c.call(unix.SYS_SYMLINKAT, c.str(l[1]), reg(regDev), c.str(l[0]))
	}
	c.call(unix.SYS_MKDIRAT, reg(regDev), c.str("shm"), imm(0o755))
	c.call(unix.SYS_MKDIRAT, reg(regDev), c.str("pts"), imm(0o755))
	c.devpts()
	c.call(unix.SYS_MOVE_MOUNT, reg(regTree), c.str(""), reg(regDev), c.str("pts"), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.close(regTree)
	c.close(regDev)
}

// device shows a device file of the host in the /dev that is being made.
func (c *compiler) device(source, name string) {
	c.save(unix.SYS_OPENAT2, regSource, reg(wire.RegOldRoot), c.str(source), structure(c, pathHow), imm(24))
	c.clone(regSource, "", regTree, false)
	c.close(regSource)
	// Read-only: what is written to a device passes, and its mode is the machine's.
	c.setattr(regTree, "", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, 0)
	c.save(unix.SYS_OPENAT, regDest, reg(regDev), c.str(name), imm(unix.O_CREAT|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC), imm(0o444))
	c.moveMount(regTree)
	c.close(regTree)
}

// lockFile takes a read lock that lasts as long as init: its descriptor is not
// closed. A lock is a process's own (fcntl(2)), so the tool's execve, which
// closes the tool's copy, leaves it. A fifo, which a tool may have put there, would
// be waited for (fifo(7)).
func (c *compiler) lockFile(p string) {
	lock := struct {
		kind, whence int16
		_            int32
		start, len   int64
		pid          int32
		_            int32
	}{kind: unix.F_RDLCK}
	c.save(unix.SYS_OPENAT, wire.RegFree, imm(atCwd), c.str(p), imm(unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC))
	c.call(wire.OpRegular, reg(wire.RegFree))
	c.call(unix.SYS_FCNTL, reg(wire.RegFree), imm(unix.F_SETLK), structure(c, lock))
}
