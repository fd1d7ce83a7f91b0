package stage

import (
	"fmt"
	"path"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// Registers of the layout's steps.
const (
	regUmask = wire.RegFree + 8 + iota
	regDev
)

// lowerLayout lowers what only explicit layouts have. What lies where is known
// when it runs, not here: the tree that is being built may hold links.
func (c *compiler) lowerLayout(action plan.Action) error {
	switch a := action.(type) {
	case plan.PutBind:
		c.putBind(a)
		c.covers[path.Clean(a.At)] = true
	case plan.PutTmpfs:
		c.putTmpfs(a)
		c.covers[path.Clean(a.At)] = false
	case plan.PutDir:
		c.find(wire.MakeDir, a.At, a.Mode, a.Mode, false)
		c.close(regDest)
	case plan.PutFile:
		c.find(wire.MakeWrite, a.At, a.Mode, a.Mode, false)
		c.writeAll(a.Data)
		c.writeGiven(a.Given)
		c.close(regDest)
	case plan.PutData:
		c.putData(a)
	case plan.PutLink:
		c.call(wire.OpPlace, reg(wire.RegRoot), structure(c, wire.Place{
			Path: c.off(rel(a.At)), Parents: 0o755, Make: wire.MakeLink, Target: c.off(a.Target)}))
	case plan.PutMode:
		c.find(wire.MakeNothing, a.At, 0, 0, false)
		c.call(wire.OpMode, reg(regDest), imm(a.Mode))
		c.close(regDest)
	case plan.PutReadOnly:
		c.find(wire.MakeNothing, a.At, 0, 0, false)
		c.setattr(regDest, "", unix.MOUNT_ATTR_RDONLY, 0)
		c.close(regDest)
	case plan.PutProc:
		c.putProc(a)
	case plan.PutDev:
		c.putDev(a)
	case plan.PutQueue:
		c.filesystem("mqueue", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, regTree)
		c.put(wire.MakeDir, a.At, 0o755, 0o755, false)
	case plan.PutOverlay:
		c.covers[path.Clean(a.At)] = a.Upper != ""
		c.putOverlay(a)
	default:
		return c.lowerAround(action)
	}
	return nil
}

// lowerAround lowers what a layout's policy asks for beside the root.
func (c *compiler) lowerAround(action plan.Action) error {
	switch a := action.(type) {
	case plan.Floor:
		c.floor()
	case plan.ClearUmask:
		c.save(unix.SYS_UMASK, regUmask, imm(0))
	case plan.RestoreUmask:
		c.call(unix.SYS_UMASK, reg(regUmask))
	case plan.OwnProc:
		c.filesystem("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, wire.RegProc)
		c.quotas(a.Quotas)
	case plan.Hostname:
		c.call(unix.SYS_SETHOSTNAME, c.str(a.Name), imm(len(a.Name)))
	case plan.BecomeIDs:
		c.call(unix.SYS_PRCTL, imm(unix.PR_SET_KEEPCAPS), imm(1))
		c.call(unix.SYS_SETRESGID, imm(a.GID), imm(a.GID), imm(a.GID))
		c.call(unix.SYS_SETRESUID, imm(a.UID), imm(a.UID), imm(a.UID))
		c.capset(^uint64(0), 0) // permitted is kept, effective is not (capabilities(7))
	case plan.EnterUser:
		c.call(unix.SYS_SETNS, reg(wire.RegGiven+a.Given), imm(unix.CLONE_NEWUSER))
	case plan.ForbidUsers:
		c.save(unix.SYS_OPENAT, wire.RegFree, imm(atCwd), c.str("/proc/sys/user/max_user_namespaces"), imm(unix.O_WRONLY|unix.O_CLOEXEC))
		c.call(unix.SYS_WRITE, reg(wire.RegFree), c.str("1"), imm(1))
		c.close(wire.RegFree)
	case plan.CheckNoUsers:
		c.call(wire.OpNoUsers)
	case plan.KeepCapabilities:
		c.keepCapabilities(a)
	case plan.Lock:
		c.lockFile(a.Path)
	case plan.Gate:
		which := wire.GateBorn
		if a.Built {
			which = wire.GateBuilt
		}
		c.call(wire.OpGate, imm(which))
	default:
		return c.lowerNet(action)
	}
	return nil
}

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

// off is the offset of a string in the program.
func (c *compiler) off(s string) uint32 { return uint32(c.str(s).v) }

// find leaves a descriptor of a path in regDest, and makes what is missing.
// like is a mode after which directories on the way are made: who must not enter
// the one must not enter the others.
func (c *compiler) find(what uint32, at string, mode, like uint32, plain bool) {
	p := wire.Place{Path: c.off(rel(at)), Parents: parentMode(like), Mode: mode, Make: what}
	if plain {
		p.Plain = 1
	}
	c.save(wire.OpPlace, regDest, reg(wire.RegRoot), structure(c, p))
}

func parentMode(like uint32) uint32 {
	mode := uint32(0o755)
	if like&0o070 == 0 {
		mode &^= 0o050
	}
	if like&0o007 == 0 {
		mode &^= 0o005
	}
	return mode
}

// put moves the mount in regTree to a path. One on the root itself is the root
// from now on: what is put there lies on it, not under it.
func (c *compiler) put(what uint32, at string, mode, like uint32, plain bool) {
	c.find(what, at, mode, like, plain)
	c.land(regTree)
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
	c.land(regTree)
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

// putDev makes a /dev. Its tmpfs is nobody else's while it is filled.
func (c *compiler) putDev(a plan.PutDev) {
	c.filesystem("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, regTree, [2]string{"mode", "0755"})
	c.find(wire.MakeDir, a.At, 0o755, 0o755, false)
	c.land(regTree)
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
	c.filesystem("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, regTree, [2]string{"ptmxmode", "0666"}, [2]string{"mode", "0620"})
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
	c.land(regTree)
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
