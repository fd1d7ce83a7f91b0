package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// Where pivot_root(2) is refused the sandbox's root is made so by chroot(2), and the harness's lies beneath it.

// noPivotRoot is a container whose filter refuses pivot_root(2).
var noPivotRoot = walls{name: "without pivot_root", without: []kerneltest.Feature{kerneltest.PivotRoot}}

// TestKernelAttackWithoutPivotRoot: the bounds on files hold as ever, whichever other mechanism is missing.
func TestKernelAttackWithoutPivotRoot(t *testing.T) {
	kerneltest.Heavy(t) // the acts of other attacks again
	for _, w := range []walls{allSets[0], allSets[1]} {
		t.Run(w.name, func(t *testing.T) {
			w.without = append(slices.Clone(w.without), noPivotRoot.without...)
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: w.without}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
					if f := Probe(); !f.Namespaces.Yes() || !f.Chroot || w.may == nil && f.SharedPIDs {
						t.Fatalf("%+v", f)
					}
					for _, list := range []string{"reading", "changing", "mounting"} {
						attackWith(t, list, w, nil)
					}
					p := attackPolicy(t, "", w)
					p.Nested = true
					if _, err := New(p); os.Getuid() != 0 && !errors.Is(err, errors.ErrUnsupported) {
						t.Errorf("Nested: %v", err)
					}
				})
			})
		})
	}
}

// beneath tries to get to a file outside: with the rights that it has, and from namespaces that it makes, in which it has every
// capability. Of these the second program tries again, "inner" or, as a control, "chrooted" into a directory that is no mount.
var _ = offer(programs, "beneath", func(args []string) {
	runtime.LockOSThread()
	secret := args[0]
	unix.Unshare(unix.CLONE_FS) // setns(2) into a mount namespace asks for it
	switch {
	case len(args) == 1:
		for _, p := range []string{"/proc/1", "/proc/self", "/proc/self/task/" + fmt.Sprint(unix.Gettid()), fmt.Sprintf("/proc/%d", os.Getppid())} {
			look("the root of "+p, p+"/root"+secret)
			look("the directory of "+p, p+"/cwd/"+strings.Repeat("../", 20)+secret)
			enter(p, openMounts(p), secret)
		}
	case args[1] == "chrooted":
		if err := errors.Join(unix.Chroot(args[2]), unix.Chdir("/")); err != nil {
			fmt.Println(err)
			return
		}
	}
	takeOff(secret)
	goUp("the root", secret)
	if len(args) == 1 { // no ids are mapped, for which it would take a /proc that can be written: the capabilities come over execve(2) as ambient ones
		c := exec.Command("/proc/self/exe")
		c.Args, c.Stdout, c.Stderr = []string{attackTool, "beneath", secret, "inner"}, os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}}
		fmt.Println("inner:", c.Run())
	}
})

// openMounts opens a process's mount namespace, which takes a /proc.
func openMounts(process string) (fd int) {
	fd, _ = unix.Open(process+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return fd
}

// enter enters a mount namespace: its root is what is mounted last on that of the namespace.
func enter(where string, fd int, secret string) {
	if unix.Setns(fd, unix.CLONE_NEWNS) == nil {
		look("the mount namespace of "+where, secret)
	}
}

// takeOff takes the root off, moves it, copies it and puts another in its place, and looks at what is there then.
func takeOff(secret string) {
	own := openMounts("/proc/self")
	enter("its own process", own, secret)
	for _, flags := range []int{0, unix.MNT_DETACH, unix.MNT_FORCE, unix.MNT_EXPIRE, unix.MNT_EXPIRE} {
		unix.Unmount("/", flags)
		look("an unmounted root", secret)
	}
	fmt.Println("umount:", unix.Unmount("/", unix.MNT_DETACH))
	enter("its own process", own, secret)
	if fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE); err == nil {
		fmt.Println("open_tree:", unix.Fchdir(fd))
		look("a copy of the root", strings.Repeat("../", 20)+secret)
		fmt.Println("move_mount:", unix.MoveMount(fd, "", unix.AT_FDCWD, "/tmp", unix.MOVE_MOUNT_F_EMPTY_PATH))
		look("a copy of the root that is attached", "/tmp/"+strings.Repeat("../", 20)+secret)
		unix.Unmount("/tmp", unix.MNT_DETACH)
	}
	if root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0); err == nil {
		fmt.Println("move the root:", unix.MoveMount(root, "", unix.AT_FDCWD, "/tmp", unix.MOVE_MOUNT_F_EMPTY_PATH), unix.Mount("/", "/tmp", "", unix.MS_MOVE, ""))
		look("a moved root", secret)
	}
	root, _ := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	err := unix.Mount("x", "/tmp", "tmpfs", 0, "")
	fmt.Println("mount:", err)
	if err == nil && root >= 0 {
		fmt.Println("pivot_root:", errors.Join(unix.Chdir("/tmp"), unix.PivotRoot(".", "."), unix.Fchdir(root)))
		look("the old root", "."+secret)
		look("above the old root", strings.Repeat("../", 20)+secret)
		fmt.Println("umount of the old root:", unix.Unmount(".", unix.MNT_DETACH))
		look("beneath the old root", "."+secret)
		fmt.Println("umount of the new root:", unix.Chroot("/"), unix.Unmount("/", unix.MNT_DETACH))
		look("beneath the new root", secret)
		enter("its own process", own, secret)
	}
}

// look prints that a file can be read.
func look(where, path string) {
	if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "secret") {
		fmt.Println("ESCAPE:", where)
	}
}

// goUp goes above the root: by "..", and with a root further down, which takes CAP_SYS_CHROOT (chroot(2)).
func goUp(where, secret string) {
	up := strings.Repeat("../", 20) + secret
	look(where, "/"+up)
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	for _, dir := range []string{"/tmp", "/usr", "/write"} {
		if unix.Chroot(dir) == nil {
			fmt.Println("chroot:", dir)
			break
		}
	}
	unix.Fchdir(root)
	look(where+", from outside another", up)
	for range 20 {
		unix.Chdir("..")
	}
	unix.Chroot(".")
	look(where+", from the top", secret)
}

// TestKernelAttackWhatLiesBeneathTheRoot: with all capabilities in its user namespace, no filter, no Landlock and no quota a tool gets neither beneath its root nor
// takes it off. In a directory that is no mount the same acts lead out; so they do where the tool keeps root's own capabilities, which the report has.
func TestKernelAttackWhatLiesBeneathTheRoot(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Landlock}}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			dir := os.Getenv("HOME")
			secret := filepath.Join(dir, "secret")
			if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o644), os.MkdirAll(filepath.Join(dir, "root", "write"), 0o755)); err != nil {
				t.Fatal(err)
			}
			within := func(userNS, shared bool) (string, string) {
				w := walls{noCalls: true, may: []Bound{policy.BoundFiles, policy.BoundProcesses}}
				p := attackPolicy(t, "", w)
				p.Open = []Bound{policy.BoundPrivileges, policy.BoundSyscalls}
				s := attackSandbox(t, p, w)
				s.facts.Chroot, s.facts.SharedPIDs, s.facts.UserNS = true, shared, userNS
				if err := s.compile(); err != nil {
					t.Fatal(err)
				}
				c := hostile(t, s, "beneath", secret)
				out, err := c.CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				return string(out), weaknesses(c.Report())
			}
			for _, shared := range []bool{false, true} { // without a pid namespace there are no quotas: more namespaces can be made
				out, weak := within(true, shared)
				if strings.Contains(out, "ESCAPE") || strings.Contains(out, "\npivot_root: <nil>\n") != shared || strings.Contains(weak, "files") {
					t.Errorf("without a pid namespace %v: %s\n%s", shared, weak, out)
				}
			}
			if as == kerneltest.Root {
				if out, weak := within(false, false); !strings.Contains(out, "ESCAPE: the mount namespace of its own process") || !strings.Contains(weak, "files absent") {
					t.Errorf("with root's own capabilities: %s\n%s", weak, out)
				}
			}
			control := hostileBare(t, "beneath", secret, "chrooted", filepath.Join(dir, "root"))
			control.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
			if out, err := control.CombinedOutput(); err != nil || !strings.Contains(string(out), "ESCAPE: the root, from outside another") {
				t.Errorf("without a root that covers another nothing leads out: %v\n%s", err, out)
			}
		})
	})
}
