package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// The acts of a tool under Policy.Nested, each in user and mount namespaces of its own, in which it has every capability.

// A nestedAct is an act there, with more namespaces by their clone flags. The tool's own directory for it is /tmp.
type nestedAct struct {
	act
	more uintptr
}

const locked = "the kernel locks the mounts of a more privileged namespace"

// hiddenOf is a directory that the policy hides in what it shows to read.
func hiddenOf(g ground) string { return filepath.Join(filepath.Dir(g.read), "hidden") }

// readsHidden reads what is hidden in a directory, by whatever way has been made, or says why there is none.
func readsHidden(around string, way ...error) error {
	return aimed(readsSecret(filepath.Join(around, "hidden", "file")), way...)
}

// writesFile changes the file in a directory, by whatever way has been made.
func writesFile(dir string, way ...error) error {
	err := os.WriteFile(filepath.Join(dir, "file"), []byte("changed\n"), 0o644)
	if err != nil {
		err = shortError(err)
	}
	return aimed(err, way...)
}

// aimed is nil if the aim was reached, whatever was said on the way, and otherwise all of it.
func aimed(aim error, way ...error) error {
	if aim == nil {
		return nil
	}
	return errors.Join(append(way, aim)...)
}

// mounts mounts at a new directory in /tmp and returns it.
func mounts(source, kind, options string, flags uintptr) (string, error) {
	at, err := os.MkdirTemp("/tmp", "at")
	if err != nil {
		return "", err
	}
	return at, unix.Mount(source, at, kind, flags, options)
}

func mountsOne(kind string) func(ground) error {
	return func(ground) error { _, err := mounts("x", kind, "", 0); return err }
}

// overlay mounts an overlayfs of lower, whose upper directory is a tmpfs's, or upper.
func overlay(lower, upper string) (string, error) {
	own, err := mounts("x", "tmpfs", "", 0)
	if err != nil {
		return "", err
	}
	work := filepath.Join(own, "work")
	if upper == "" {
		upper = filepath.Join(own, "upper")
	} else {
		work = filepath.Join(upper, "work")
	}
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return "", shortError(err)
	}
	return mounts("overlay", "overlay", "userxattr,lowerdir="+lower+",upperdir="+upper+",workdir="+work, 0)
}

func connects(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// leaveRoot makes a new root and detaches the old one, of which fd keeps a directory.
func leaveRoot(keep string) (fd int, err error) {
	if fd, err = unix.Open(keep, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return -1, err
	}
	root, err := mounts("x", "tmpfs", "", 0)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(unix.Chdir(root), unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), unix.Chdir("/")); err != nil {
		return -1, fmt.Errorf("not left: %w", err)
	}
	return fd, nil
}

func readsAt(fd int, name string) error {
	f, err := unix.Openat(fd, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	text := make([]byte, 100)
	n, err := unix.Read(f, text)
	if !strings.Contains(string(text[:max(n, 0)]), "original") {
		return errors.Join(err, errors.New("not the secret"))
	}
	return nil
}

var nestedActs = []nestedAct{
	{act: act{name: "a tmpfs of its own", works: true, try: mountsOne("tmpfs")}},
	{act: act{name: "terminals of its own", works: true, try: mountsOne("devpts")}},
	{act: act{name: "a /proc of its own processes", works: true, try: mountsOne("proc")}, more: unix.CLONE_NEWPID},
	{act: act{name: "a name of its own", works: true, try: func(ground) error { return unix.Sethostname([]byte("inside")) }}, more: unix.CLONE_NEWUTS},
	{act: act{name: "an overlay of what can be read", works: true, try: func(g ground) error {
		if os.Getenv("ATTACK_OVERLAY") != "yes" {
			return nil // this host has none
		}
		at, err := overlay(g.read, "")
		return errors.Join(err, readsSecret(filepath.Join(at, "file")), writesFile(at))
	}}},
	{act: act{name: "a root of its own", works: true, try: func(g ground) error {
		_, err := leaveRoot("/tmp")
		return err
	}}},
	{act: act{name: "a process that outlives its parent", works: true, try: func(ground) error {
		c := exec.Command("/proc/self/exe")
		c.Args, c.Stdout = []string{attackTool, "stay"}, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return c.Start()
	}}},

	{act: act{name: "taking off what hides", never: locked, try: func(g ground) error {
		return readsHidden(filepath.Dir(g.read), unix.Unmount(hiddenOf(g), unix.MNT_DETACH))
	}}},
	{act: act{name: "a bind without what hides", never: locked, try: func(g ground) error {
		at, err := mounts(filepath.Dir(g.read), "", "", unix.MS_BIND)
		return readsHidden(at, err)
	}}},
	{act: act{name: "a detached tree without what hides", never: locked, try: func(g ground) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, filepath.Dir(g.read), unix.OPEN_TREE_CLONE)
		if err != nil {
			return err
		}
		return readsAt(fd, "hidden/file")
	}}},
	{act: act{name: "taking off what hides in a copy of the mounts", never: locked, try: func(g ground) error {
		at, err := mounts(filepath.Dir(g.read), "", "", unix.MS_BIND|unix.MS_REC)
		return readsHidden(at, err, unix.Unmount(filepath.Join(at, "hidden"), unix.MNT_DETACH))
	}}},
	{act: act{name: "moving away what hides", never: locked, try: func(g ground) error {
		at, err := os.MkdirTemp("/tmp", "at")
		return readsHidden(filepath.Dir(g.read), err, unix.Mount(hiddenOf(g), at, "", unix.MS_MOVE, ""))
	}}},
	{act: act{name: "an overlay without what hides", never: locked, try: func(g ground) error {
		at, err := overlay(filepath.Dir(g.read), "")
		return readsHidden(at, err)
	}}},
	{act: act{name: "a tree detached with its root, in which what hides is no mount point any more", never: locked, try: func(g ground) error {
		fd, err := leaveRoot(filepath.Dir(g.read))
		if err != nil {
			return err
		}
		if err := unix.Renameat(fd, "hidden", fd, "shown"); err == nil {
			return nil
		}
		return readsAt(fd, "hidden/file")
	}}},
	{act: act{name: "the parents of a tree detached with its root", never: locked, try: func(g ground) error {
		fd, err := leaveRoot(g.read)
		if err != nil {
			return err
		}
		return readsAt(fd, "../../secret/"+filepath.Base(g.secret)+"/file")
	}}},
	{act: act{name: "making a mount writable", never: locked, try: func(g ground) error {
		return writesFile(g.read, unix.Mount("", filepath.Dir(g.read), "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	}}},
	{act: act{name: "making a mount writable, by mount_setattr", never: locked, try: func(g ground) error {
		err := unix.MountSetattr(unix.AT_FDCWD, filepath.Dir(g.read), unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		return writesFile(g.read, err)
	}}},
	{act: act{name: "making a copy of a mount writable", never: locked, try: func(g ground) error {
		at, err := mounts(g.read, "", "", unix.MS_BIND)
		return writesFile(at, err, unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	}}},
	{act: act{name: "an overlay that writes to what can be read", never: locked, try: func(g ground) error {
		_, err := overlay("/usr", g.read)
		return err
	}}},
	{act: act{name: "making setuid programs count", never: locked, try: func(ground) error {
		return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}}},
	{act: act{name: "climbing out of a chroot", never: "the sandbox's root is the root of every mount namespace inside", try: func(g ground) error {
		at, err := os.MkdirTemp("/tmp", "at")
		if err := errors.Join(err, unix.Chdir("/"), unix.Chroot(at)); err != nil {
			return err
		}
		for range 64 {
			unix.Chdir("..")
		}
		return errors.Join(unix.Chroot("."), readsSecret(filepath.Join(g.secret, "file")))
	}}},
	{act: act{name: "init's root", never: "init is not dumpable", try: func(g ground) error { return readsSecret("/proc/1/root" + g.secret + "/file") }}},
	{act: act{name: "tracing init", never: "init is not dumpable", try: func(ground) error { return unix.PtraceAttach(1) }}},
	{act: act{name: "killing init", never: "a pid namespace's first process takes no signal from inside", try: func(ground) error {
		unix.Kill(1, unix.SIGKILL)
		return errors.New("we live")
	}}},
	{act: act{name: "killing the harness", never: "it would end the test", try: func(g ground) error { return unix.Kill(g.harness, 0) }}},
	{act: act{name: "the host's network", tame: true, try: func(ground) error { return connects(unix.AF_INET, inet(os.Getenv("ATTACK_TCP"))) }}},
	{act: act{name: "an abstract socket", tame: true, try: func(ground) error {
		return connects(unix.AF_UNIX, &unix.SockaddrUnix{Name: os.Getenv("ATTACK_ABSTRACT")})
	}}},
	{act: act{name: "sysfs", never: "none is shown that it could be a second of", try: mountsOne("sysfs")}, more: unix.CLONE_NEWNET},
	{act: act{name: "cgroup2 of init's namespace", never: "that is another user namespace's", try: mountsOne("cgroup2")}},
	{act: act{name: "a cgroup namespace", tame: true, try: func(ground) error { runtime.LockOSThread(); return unix.Unshare(unix.CLONE_NEWCGROUP) }}},
	{act: act{name: "a disk's file system", never: "user namespaces may not", try: mountsOne("ext4")}},
	{act: act{name: "debugfs", never: "user namespaces may not", try: mountsOne("debugfs")}},
	{act: act{name: "a device", never: "user namespaces may not", try: func(ground) error {
		return unix.Mknod("/tmp/memory", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1)))
	}}},
	{act: act{name: "the machine's settings", never: "they are root's", try: func(ground) error {
		at, err := mounts("x", "proc", "", 0)
		if err != nil {
			return err
		}
		fd, err := unix.Open(filepath.Join(at, "sys/kernel/core_pattern"), unix.O_WRONLY, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}}, more: unix.CLONE_NEWPID},
	{act: act{name: "more namespaces than the quota", tame: true, try: func(ground) error {
		runtime.LockOSThread()
		for range mostHeld {
			if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
				return err
			}
			if _, err := unix.Open("/proc/thread-self/ns/uts", unix.O_RDONLY, 0); err != nil {
				return err
			}
		}
		return nil
	}}},
	{act: act{name: "the user namespace around", never: "that is another user namespace's", try: func(ground) error {
		return namespaceOf(os.Getppid(), "user")
	}}},
	{act: act{name: "a setuid file, by openat2", tame: true, try: func(g ground) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Join(g.write, "set"), &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		if err == nil {
			unix.Close(fd)
		}
		return err
	}}},
	{act: act{name: "a setuid file", tame: true, try: func(g ground) error { return unix.Chmod(filepath.Join(g.write, "file"), 0o4755) }}},
	{act: act{name: "a capability of its own namespace on a file", works: true, try: func(g ground) error {
		all := "\x01\x00\x00\x02" + strings.Repeat("\xff", 4) + strings.Repeat("\x00", 4) + strings.Repeat("\xff", 4) + strings.Repeat("\x00", 4)
		err := unix.Setxattr(filepath.Join(g.write, "file"), "security.capability", []byte(all), 0)
		if err == unix.EOPNOTSUPP {
			return nil // the file system has none
		}
		return err
	}}},
}

// mostHeld is more namespaces than a tool may have.
const mostHeld = 200

// namespaceOf enters a namespace of a process.
func namespaceOf(pid int, kind string) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(fd, 0))
}

var (
	_ = offer(attacks, "nested", nestedList())
	_ = offer(programs, "nested act", func(args []string) {
		i, _ := strconv.Atoi(args[0])
		harness, _ := strconv.Atoi(args[2])
		if err := nestedActs[i].try(groundOf(args[1], i, harness)); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
	})
	_ = offer(programs, "stay", func([]string) {
		for {
			unix.Pause()
		}
	})
)

// nestedList is nestedActs as acts of the tool itself, which tries each in new namespaces.
func nestedList() (list []act) {
	for i, n := range nestedActs {
		a := n.act
		a.try = func(g ground) error {
			base := filepath.Dir(filepath.Dir(g.write))
			c := exec.Command("/proc/self/exe")
			c.Args = []string{attackTool, "nested act", strconv.Itoa(i), base, strconv.Itoa(g.harness)}
			c.Stderr = os.Stderr
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | n.more,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
			out, err := c.Output()
			if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(out) > 0 {
				return errors.New(strings.ReplaceAll(string(out), "\n", ", "))
			}
			return err
		}
		list = append(list, a)
	}
	return list
}

// TestKernelAttackNested: what a tool makes in user and mount namespaces of its own stays in the sandbox.
func TestKernelAttackNested(t *testing.T) {
	kerneltest.Long(t)
	for _, w := range []walls{{name: allWalls}, {name: noLandlock, without: []kerneltest.Feature{kerneltest.Landlock}}} {
		t.Run(w.name, func(t *testing.T) {
			w.chosen(t, []walls{{name: allWalls}})
			kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary, Without: w.without}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.HasUserNamespaces)
				serveHost(t)
				t.Run("without walls", func(t *testing.T) { attackPlainly(t, "nested") })
				t.Setenv("ATTACK_OVERLAY", Probe().Overlay.Answer.String())
				write := ""
				attackWith(t, "nested", w, func(base string, p *Policy) {
					hidden := filepath.Join(base, "read", "hidden")
					if err := errors.Join(os.Mkdir(hidden, 0o755), os.WriteFile(filepath.Join(hidden, "file"), []byte("original\n"), 0o644)); err != nil {
						t.Fatal(err)
					}
					p.Nested, p.Files.Hide = true, []string{hidden}
					write = filepath.Join(base, "write")
				})
				gainsNothing(t, write)
			})
		})
	}
}

// gainsNothing looks at the files that the tool may have made: none gives others the user's rights, and the capabilities
// of one count in namespaces of the user's alone (VFS_CAP_REVISION_3, capabilities(7)).
func gainsNothing(t *testing.T, dir string) {
	t.Helper()
	marked := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("ESCAPE: %s: %v", path, info.Mode())
		}
		mark := make([]byte, 64)
		if n, err := unix.Getxattr(path, "security.capability", mark); err == nil {
			if marked++; n != 24 || mark[3] != 3 || binary.LittleEndian.Uint32(mark[20:]) != uint32(os.Getuid()) || os.Getuid() == 0 {
				t.Errorf("ESCAPE: %s: security.capability %x", path, mark[:n])
			}
		}
		return err
	})
	if err != nil || marked > 1 {
		t.Errorf("%d files with capabilities: %v", marked, err)
	}
}
