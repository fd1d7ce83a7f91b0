package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _, _ = offer(attacks, "reading", readingActs), offer(attacks, "changing", changingActs), offer(attacks, "mounting", mountingActs)

func (f ground) hidden() string { return filepath.Join(f.secret, "file") }

// through returns an act that reads the secret by way of a path.
func through(path func(f ground) string) func(ground) error {
	return func(f ground) error { return readsSecret(path(f)) }
}

// asTheParent: the sandbox's first process is the tool's parent, whose act is the
// same. The machine's own may be closed to root itself.
const asTheParent = "the parent's is the same act"

// readingActs try to read what is not granted.
var readingActs = []act{
	{name: "read what is granted", works: true, tame: true, try: func(f ground) error { return readsSecret(filepath.Join(f.read, "file")) }},
	{name: "read a secret by its path", tame: true, try: through(func(f ground) string { return f.hidden() })},
	{name: "read a secret by dots behind a granted directory", tame: true, try: through(func(f ground) string {
		return f.read + "/../../secret/" + filepath.Base(f.secret) + "/file"
	})},
	{name: "read a secret through /proc/self/root", tame: true, try: through(func(f ground) string { return "/proc/self/root" + f.hidden() })},
	{name: "read a secret through /proc/thread-self/root", tame: true, try: through(func(f ground) string { return "/proc/thread-self/root" + f.hidden() })},
	{name: "read a secret through init's root", never: asTheParent, try: through(func(f ground) string { return "/proc/1/root" + f.hidden() })},
	{name: "read a secret through the parent's root", tame: true, try: through(func(f ground) string {
		return "/proc/" + strconv.Itoa(os.Getppid()) + "/root" + f.hidden()
	})},
	{name: "read a secret through the harness's root", tame: true, try: through(func(f ground) string {
		return "/proc/" + strconv.Itoa(f.harness) + "/root" + f.hidden()
	})},
	{name: "read a secret through init's directory", never: asTheParent, try: through(func(f ground) string { return "/proc/1/cwd/../../../../../../.." + f.hidden() })},
	{name: "read a secret through one's own directory", tame: true, try: through(func(f ground) string { return "/proc/self/cwd/../../../../../../../.." + f.hidden() })},
	{name: "read a secret through any descriptor of init", never: asTheParent, try: throughDescriptors("/proc/1/fd")},
	{name: "read a secret through any descriptor of the parent", tame: true, try: func(f ground) error {
		return throughDescriptors(fmt.Sprintf("/proc/%d/fd", os.Getppid()))(f)
	}},
	{name: "read a secret through any descriptor of one's own", tame: true, try: throughDescriptors("/proc/self/fd")},
	{name: "read a secret through a symbolic link", tame: true, try: func(f ground) error {
		link := filepath.Join(f.write, "link")
		if err := os.Symlink(f.hidden(), link); err != nil {
			return err
		}
		return readsSecret(link)
	}},
	{name: "read a secret through a hard link", tame: true, try: func(f ground) error {
		link := filepath.Join(f.write, "hard")
		if err := os.Link(f.hidden(), link); err != nil {
			return shortError(err)
		}
		return readsSecret(link)
	}},
	{name: "move a secret into a granted directory", tame: true, try: func(f ground) error {
		return shortError(os.Rename(f.hidden(), filepath.Join(f.write, "moved")))
	}},
	{name: "see a secret's name", tame: true, unheld: []string{noNamespaces}, try: func(f ground) error {
		_, err := os.Lstat(f.hidden())
		return shortError(err)
	}},
	{name: "list the secret's directory", tame: true, try: func(f ground) error {
		_, err := os.ReadDir(f.secret)
		return shortError(err)
	}},
	{name: "execute a program that is not granted", tame: true, try: func(f ground) error {
		return reached(rawCall(unix.SYS_EXECVE, cstring(f.hidden()), 0, 0), unix.ENOEXEC) // it is no program
	}},
	{name: "open by file handle", asRoot: true, try: openByHandle},
	{name: "read the shadow file's sibling in root's home", asRoot: true, try: func(f ground) error {
		_, err := os.ReadDir("/root")
		return shortError(err)
	}},
}

// throughDescriptors tries each descriptor in dir as the start of a way out.
func throughDescriptors(dir string) func(ground) error {
	return func(f ground) error {
		names, err := os.ReadDir(dir)
		if err != nil {
			return shortError(err)
		}
		last := fmt.Errorf("%d descriptors lead nowhere", len(names))
		for _, n := range names {
			for _, up := range []string{"", "/../../../../../.."} {
				if readsSecret(filepath.Join(dir, n.Name())+up+f.hidden()) == nil {
					return nil
				}
			}
		}
		return last
	}
}

func openByHandle(f ground) error {
	handle, id, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(f.read, "file"), 0)
	if err != nil {
		return fmt.Errorf("name_to_handle_at: %w", err)
	}
	_ = id
	dir, err := unix.Open(f.read, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDWR)
	if err != nil {
		return fmt.Errorf("open_by_handle_at: %w", err)
	}
	unix.Close(fd)
	return nil
}

func cstring(s string) uintptr {
	b := append([]byte(s), 0)
	return uintptr(unsafe.Pointer(&b[0]))
}

// onFile returns an act on the file that may only be read.
func onFile(do func(path string) error) func(ground) error {
	return func(f ground) error { return shortError(do(filepath.Join(f.read, "file"))) }
}

// onOpen returns an act on a descriptor of the file that may only be read.
func onOpen(do func(fd int) error) func(ground) error {
	return onFile(func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("cannot even be opened: %w", err)
		}
		defer unix.Close(fd)
		return do(fd)
	})
}

// onDevice returns an act on the null device, which is the machine's own.
func onDevice(do func(path string, st unix.Stat_t) error) func(ground) error {
	return func(ground) error {
		var st unix.Stat_t
		if err := unix.Stat(os.DevNull, &st); err != nil {
			return err
		}
		return shortError(do(os.DevNull, st))
	}
}

var attributes = []string{noNamespaces} // Landlock does not hold them, which New says

// changingActs try to change what may only be read. Every act has a file of its
// own, since the first that succeeds without walls takes it away.
var changingActs = []act{
	{name: "write where it is granted", works: true, tame: true, try: func(f ground) error {
		return os.WriteFile(filepath.Join(f.write, "new"), []byte("x"), 0o600)
	}},
	{name: "open for writing", tame: true, try: onFile(func(p string) error { return open(p, unix.O_WRONLY) })},
	{name: "open for both", tame: true, try: onFile(func(p string) error { return open(p, unix.O_RDWR) })},
	{name: "open for reading and truncate", tame: true, try: onFile(func(p string) error { return open(p, unix.O_RDONLY|unix.O_TRUNC) })},
	{name: "truncate by path", tame: true, try: onFile(func(p string) error { return unix.Truncate(p, 0) })},
	{name: "reopen one's descriptor for writing", tame: true, try: onOpen(func(fd int) error {
		return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR)
	})},
	{name: "reopen an O_PATH descriptor for writing", tame: true, try: onFile(func(p string) error {
		fd, err := unix.Open(p, unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR)
	})},
	{name: "truncate by a descriptor for reading", never: "the kernel holds a descriptor to how it was opened", try: onOpen(func(fd int) error { return unix.Ftruncate(fd, 0) })},
	{name: "map a descriptor for reading and write", never: "the kernel holds a descriptor to how it was opened", try: onOpen(func(fd int) error {
		_, err := unix.Mmap(fd, 0, 4096, unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})},
	{name: "change the mode", tame: true, unheld: attributes, try: onFile(func(p string) error { return unix.Chmod(p, 0o777) })},
	{name: "change the mode by descriptor", tame: true, unheld: attributes, try: onOpen(func(fd int) error { return unix.Fchmod(fd, 0o777) })},
	{name: "change the owner", tame: true, unheld: attributes, try: onFile(func(p string) error { return os.Chown(p, os.Getuid(), os.Getgid()) })},
	{name: "change the times", tame: true, unheld: attributes, try: onFile(func(p string) error {
		return unix.UtimesNano(p, []unix.Timespec{{Sec: 1}, {Sec: 1}})
	})},
	{name: "set an extended attribute", tame: true, unheld: attributes, try: onFile(func(p string) error { return unix.Setxattr(p, "user.x", []byte("x"), 0) })},
	{name: "set the inode's flags", tame: true, lacks: []error{unix.ENOTTY}, unheld: attributes, try: onOpen(func(fd int) error {
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, nodump)
	})},
	{name: "change the mode of the machine's null device", asRoot: true, unheld: attributes, lacks: []error{unix.EPERM}, try: onDevice(func(p string, st unix.Stat_t) error {
		return unix.Chmod(p, st.Mode&0o7777) // to what it is
	})},
	{name: "change the mode of the null device that is one's input", asRoot: true, unheld: attributes, lacks: []error{unix.EPERM}, try: onDevice(func(p string, st unix.Stat_t) error {
		return unix.Fchmod(0, st.Mode&0o7777)
	})},
	{name: "change the times of the machine's terminal device", asRoot: true, unheld: attributes, lacks: []error{unix.EPERM}, try: onDevice(func(p string, st unix.Stat_t) error {
		return unix.UtimesNano("/dev/tty", []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}})
	})},
	{name: "write to the null device", works: true, tame: true, try: onDevice(func(p string, st unix.Stat_t) error { return os.WriteFile(p, []byte("x"), 0o666) })},
	{name: "remove", tame: true, try: onFile(os.Remove)},
	{name: "rename within", tame: true, try: onFile(func(p string) error { return os.Rename(p, p+"2") })},
	{name: "move out", tame: true, try: func(f ground) error { return shortError(os.Rename(f.read+"/file", f.write+"/moved")) }},
	{name: "move over", tame: true, try: func(f ground) error { return shortError(os.Rename(f.write+"/file", f.read+"/file")) }},
	{name: "exchange", tame: true, try: func(f ground) error {
		return unix.Renameat2(unix.AT_FDCWD, f.write+"/file", unix.AT_FDCWD, f.read+"/file", unix.RENAME_EXCHANGE)
	}},
	{name: "link in", tame: true, try: func(f ground) error { return shortError(os.Link(f.write+"/file", f.read+"/in")) }},
	{name: "link out and write", tame: true, try: func(f ground) error {
		if err := os.Link(f.read+"/file", f.write+"/out"); err != nil {
			return shortError(err)
		}
		return open(f.write+"/out", unix.O_RDWR)
	}},
	{name: "link a descriptor out", tame: true, try: func(f ground) error {
		fd, err := unix.Open(f.read+"/file", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, f.write+"/linked-out", unix.AT_SYMLINK_FOLLOW)
	}},
	{name: "make a directory", tame: true, try: func(f ground) error { return shortError(os.Mkdir(f.read+"/d", 0o755)) }},
	{name: "make a symbolic link", tame: true, try: func(f ground) error { return shortError(os.Symlink("x", f.read+"/l")) }},
	{name: "make a pipe", tame: true, try: func(f ground) error { return unix.Mkfifo(f.read+"/p", 0o600) }},
	{name: "make a socket", tame: true, try: func(f ground) error { return unix.Mknod(f.read+"/s", unix.S_IFSOCK|0o600, 0) }},
	{name: "make a nameless file and link it", tame: true, try: func(f ground) error {
		fd, err := unix.Open(f.read, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, f.read+"/named", unix.AT_SYMLINK_FOLLOW)
	}},
	{name: "make a nameless file elsewhere and link it in", tame: true, try: func(f ground) error {
		fd, err := unix.Open(f.write, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, f.read+"/named", unix.AT_SYMLINK_FOLLOW)
	}},
	{name: "make a disk device", bare: true, try: func(f ground) error { return unix.Mknod(f.write+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))) }},
	{name: "make a memory device", bare: true, try: func(f ground) error { return unix.Mknod(f.write+"/mem", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) }},
	{name: "make a file in the root directory", bare: true, try: func(f ground) error { return open("/holdfast-attack", unix.O_CREAT|unix.O_WRONLY) }},
	{name: "make a file in /usr", bare: true, try: func(f ground) error { return open("/usr/holdfast-attack", unix.O_CREAT|unix.O_WRONLY) }},
	{name: "open the tool's own program for writing", never: "a program that runs is busy (ETXTBSY)", try: func(f ground) error { return open("/proc/self/exe", unix.O_WRONLY) }},
	{name: "open init's program for writing", never: "a program that runs is busy (ETXTBSY)", try: func(f ground) error { return open("/proc/1/exe", unix.O_WRONLY) }},
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// mountingActs try to change the tree of mounts. None is tame: see TestKernelAttacksSucceedBare.
var mountingActs = []act{
	{name: "mount a tmpfs", bare: true, try: func(f ground) error { return unix.Mount("x", f.write, "tmpfs", 0, "") }},
	{name: "mount a procfs", bare: true, try: func(f ground) error { return unix.Mount("x", f.write, "proc", 0, "") }},
	{name: "bind", bare: true, try: func(f ground) error { return unix.Mount(f.read, f.write, "", unix.MS_BIND, "") }},
	{name: "remount read-write", bare: true, try: func(f ground) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
	{name: "change propagation", bare: true, try: func(f ground) error { return unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "") }},
	{name: "uncover /proc/sys", bare: true, try: func(f ground) error { return unix.Unmount("/proc/sys", unix.MNT_DETACH) }},
	{name: "uncover /proc", bare: true, try: func(f ground) error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
	{name: "unmount /", bare: true, try: func(f ground) error { return unix.Unmount("/", unix.MNT_DETACH) }},
	{name: "pivot", bare: true, try: func(f ground) error { return unix.PivotRoot(f.write, f.write) }},
	{name: "chroot", bare: true, try: func(f ground) error { return unix.Chroot(f.write) }},
	{name: "fsopen", bare: true, try: func(f ground) error { return rawCall(unix.SYS_FSOPEN, cstring("tmpfs"), 0) }},
	{name: "fspick", bare: true, try: func(f ground) error { return rawCall(unix.SYS_FSPICK, uintptr(0xffffffffffffff9c), cstring("/"), 0) }},
	{name: "open_tree a copy", bare: true, try: func(f ground) error {
		return rawCall(unix.SYS_OPEN_TREE, uintptr(0xffffffffffffff9c), cstring("/"), unix.OPEN_TREE_CLONE)
	}},
	{name: "move a mount", bare: true, try: func(f ground) error {
		return rawCall(unix.SYS_MOVE_MOUNT, uintptr(0xffffffffffffff9c), cstring("/proc"), uintptr(0xffffffffffffff9c), cstring(f.write), 0)
	}},
	{name: "clear read-only by mount_setattr", bare: true, try: func(f ground) error {
		attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		return unix.MountSetattr(unix.AT_FDCWD, "/usr", unix.AT_RECURSIVE, &attr)
	}},
	{name: "swap on", bare: true, try: func(f ground) error {
		return reached(rawCall(unix.SYS_SWAPON, cstring(f.write+"/file"), 0), unix.EINVAL)
	}},
	{name: "join init's mount namespace", bare: true, try: joinNamespace("/proc/1/ns/mnt")},
	{name: "join init's user namespace", never: "nobody can join the user namespace that he is in (setns(2), EINVAL)", try: joinNamespace("/proc/1/ns/user")},
	{name: "join one's own user namespace anew", never: "nobody can join the user namespace that he is in (setns(2), EINVAL)", try: joinNamespace("/proc/self/ns/user")},
	{name: "a new user and mount namespace", bare: true, try: func(f ground) error { return unshareIn(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
}

func joinNamespace(path string) func(ground) error {
	return func(ground) error {
		fd, err := unix.Open(path, unix.O_RDONLY, 0)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		defer unix.Close(fd)
		return inAChild(unix.SYS_SETNS, uintptr(fd), 0)
	}
}

// inAChild makes a call in a new process of one thread: a Go process has more,
// for which the kernel refuses some by itself.
func inAChild(nr, a, b uintptr) error { return inAChild3(nr, a, b, 0) }

func inAChild3(nr, a, b, c uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, errno = unix.RawSyscall(nr, a, b, c)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &status, unix.WALL, nil); err != nil {
		return err
	}
	if !status.Exited() || status.ExitStatus() != 0 {
		return unix.Errno(status.ExitStatus())
	}
	return nil
}

// unshareIn unshares in a new process: a Go process has threads, which the
// kernel refuses by itself.
func unshareIn(flags uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, unix.WALL, nil)
	return err
}

func TestKernelAttackReading(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		attackPlainly(t, "reading")
		attackWith(t, "reading", w, nil)
	})
}

func TestKernelAttackChanging(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		attackPlainly(t, "changing")
		attackWith(t, "changing", w, nil)
	})
}

func TestKernelAttackMounting(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) { attackWith(t, "mounting", w, nil) })
}

const nodump = 0x40 // FS_NODUMP_FL, linux/fs.h
