package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestEveryAttackIsShownToSucceedSomewhere: an act that fails everywhere says
// nothing of the walls.
func TestEveryAttackIsShownToSucceedSomewhere(t *testing.T) {
	for list, acts := range attacks {
		for _, a := range acts {
			if !a.works && !a.tame && !a.asRoot && !a.bare && len(a.unheld) == 0 && a.never == "" {
				t.Errorf("%s: %s: nothing shows that it succeeds without its defence", list, a.name)
			}
		}
	}
}

// TestKernelAttacksSucceedBare tries as root, in namespaces of its own that
// nothing locks, what would harm the machine without them. Each act must
// succeed there, each in a process of its own.
func TestKernelAttacksSucceedBare(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.IsRoot)
	t.Setenv("ATTACK_SETUID", makeSetuid(t))
	for list, acts := range attacks {
		if !slices.ContainsFunc(acts, func(a act) bool { return a.bare }) {
			continue
		}
		t.Run(list, func(t *testing.T) {
			base := makeGrounds(t, len(acts))
			for i, a := range acts {
				if !a.bare {
					continue
				}
				out, err := bare(list, base, strconv.Itoa(i)).CombinedOutput()
				if got := parseOutcomes(string(out))[i]; got != "succeeded" && !a.isLacking(got) {
					t.Errorf("%s: fails bare too: %v %s", a.name, err, out)
				}
			}
		})
	}
}

// bare makes a command that tries one act in new namespaces.
func bare(list, base, which string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{attackTool, "bare", list, base, which}
	c.Env = append(os.Environ(), "HARNESS=1") // its own number there
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP}
	return c
}

var _ = offer(programs, "bare", func(args []string) {
	which, _ := strconv.Atoi(args[2])
	if err := furnish(groundOf(args[1], which, 0)); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	tryAll(args[0], args[1], args[2])
})

// furnish gives the new mount namespace what a sandbox has: mounts on /proc,
// /proc/sys and /usr that can be taken away, a directory that is a mount, and
// devices. Most have a harmless one behind their names.
func furnish(f ground) error {
	null := int(unix.Mkdev(1, 3))
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND, ""),
		unix.Mount("sysfs", "/sys", "sysfs", 0, ""),
		unix.Mount("/usr", "/usr", "", unix.MS_BIND, ""),
		unix.Mount(f.write, f.write, "", unix.MS_BIND, ""),
		unix.Mount("tmpfs", "/dev", "tmpfs", 0, ""),
		unix.Mknod("/dev/null", unix.S_IFCHR|0o666, null),
		unix.Mknod("/dev/console", unix.S_IFCHR|0o666, null),
		unix.Mkdir("/dev/net", 0o755),
		unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))), // of the new network namespace
	)
}
