package stage

import (
	"fmt"
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

const (
	attrsRead   = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrsWrite  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrsDevice = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// how is struct open_how of openat2(2).
type how struct{ flags, mode, resolve uint64 }

// pathHow opens a path for reference only and follows no symbolic link
// anywhere: policies hold canonical paths, so a link on the way was put there
// since, and is refused with ELOOP.
var pathHow = how{unix.O_PATH | unix.O_CLOEXEC, 0, unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}

// inRootHow opens a destination inside the new root. What lies there may be a
// tree that a hostile tool has written: a symbolic link on the way is refused,
// never followed (CVE-2026-87766 in bubblewrap).
var inRootHow = how{unix.O_PATH | unix.O_CLOEXEC, 0, unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}

// mountAttr is struct mount_attr of mount_setattr(2): what to set, then what to
// clear, the propagation and a user namespace.
type mountAttr struct {
	set         uint64
	_           uint64 // to clear
	propagation uint64
	_           uint64 // user namespace
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
	c.closeLater(regNew)
}

// onHost reports whether p lies in a tree of the host, where nothing must be
// created: the innermost mount above p decides.
func (c *compiler) onHost(p string) bool {
	for ; ; p = path.Dir(p) {
		if host, ok := c.mounted[p]; ok || p == "/" {
			return host
		}
	}
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

// attach moves the mount in register to a path of the new root, and closes the register. It makes the mount point first, unless the path
// lies in a tree of the host, where it exists.
func (c *compiler) attach(register int, at string, dir bool) {
	switch {
	case c.onHost(at):
	case dir:
		c.makeDir(at, 0o755)
	default:
		c.parents(at)
		c.call(unix.SYS_MKNODAT, reg(wire.RegRoot), c.str(rel(at)), imm(unix.S_IFREG|0o444), imm(0)).Ignore[0] = uint16(unix.EEXIST)
	}
	c.cover(register, at)
	c.closeLater(register)
}

// cover moves the mount in register over what is at a path of the new root. A way through the sandbox's own file systems alone has
// no symbolic link: the call may look it up. Any other way is opened first.
func (c *compiler) cover(register int, at string) {
	if c.ownWay(at) {
		c.call(unix.SYS_MOVE_MOUNT, reg(register), c.str(""), reg(wire.RegRoot), c.str(rel(at)), imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		return
	}
	c.call(wire.OpCover, reg(register), c.str(rel(at)))
}

// ownWay reports whether the directories above p are all in file systems that this program has made, and are no links.
func (c *compiler) ownWay(p string) bool {
	for p != "/" {
		if p = path.Dir(p); c.mounted[p] || c.linked[p] {
			return false
		}
	}
	return true
}

// moveMount moves the mount in register to where regDest is, and closes regDest: the mount of a file that was opened for
// writing as it was made cannot become read-only before that.
func (c *compiler) moveMount(register int) {
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

// slot makes a directory in the scratch.
func (c *compiler) slot(name string, mode uint32) {
	c.call(unix.SYS_MKDIRAT, reg(wire.RegScratch), c.str(name), imm(0o700))
	c.call(unix.SYS_FCHMODAT, reg(wire.RegScratch), c.str(name), imm(mode)) // whatever the umask
}

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

// writeGiven writes file given-1 of the run to regDest; 0 writes nothing.
func (c *compiler) writeGiven(given int) {
	if given <= 0 {
		return
	}
	c.call(unix.SYS_WRITE, reg(regDest), ptr(0), imm(0))
	c.t.given = append(c.t.given, givenFile{c.process, len(c.t.ops[c.process]) - 1, given - 1})
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

// quotas sets the limits of init's namespaces. That on process ids limits its
// processes: RLIMIT_NPROC does not bind uid 0 (copy_process exempts INIT_USER). It
// belongs to the pid namespace since Linux 6.14; before, it is the whole machine's,
// and must not be touched. Those below sys/user belong to the user namespace, and
// count what is in the nested ones too (namespaces(7)).
func (c *compiler) quotas(q plan.Quotas) {
	c.sysctl("kernel/pid_max", q.PIDs)
	c.sysctl("user/max_user_namespaces", q.Users)
	if q.Others > 0 {
		for _, kind := range []string{"mnt", "pid", "net", "ipc", "uts"} {
			c.sysctl("user/max_"+kind+"_namespaces", q.Others)
		}
		c.sysctl("user/max_cgroup_namespaces", 1) // that is init's
	}
	c.sysctl("user/max_inotify_instances", q.Instances)
	c.sysctl("user/max_inotify_watches", q.Watches)
}
