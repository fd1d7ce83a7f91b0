package host

import (
	"os"
	"strings"
	"syscall"
)

// An Obstacle is what the kernel refused when namespaces were tried.
type Obstacle struct {
	Errno syscall.Errno
	Mount bool // the namespaces were made, and a mount in them was refused
}

// switches are what hosts use to keep processes from namespaces, as far as a process can see it.
type switches struct {
	sysctls  []string // those that forbid, as the commands that allow
	filtered bool     // a system call filter is in force
	masked   bool     // parts of /proc are covered
}

// namespaceRemedy says what would let this process make namespaces.
func namespaceRemedy(o Obstacle) string { return o.remedy(readSwitches()) }

// remedy names everything that is in the way, not the first thing alone: Docker's default profile
// refuses namespaces, and its covered /proc then keeps the kernel from mounting a new one
// (mount_too_revealing of fs/namespace.c).
func (o Obstacle) remedy(s switches) string {
	remedies := s.sysctls
	if s.filtered {
		remedies = append(remedies, "a system call filter is in force: a profile that allows clone, unshare, mount and pivot_root in user namespaces (Docker: --security-opt seccomp=unconfined; Kubernetes: seccompProfile Unconfined)")
	}
	if s.masked {
		remedies = append(remedies, "parts of /proc are covered, so that no new one may be mounted: a container that leaves it whole (Docker: --security-opt systempaths=unconfined; Podman: --security-opt unmask=ALL; Kubernetes: procMount Unmasked)")
	}
	switch {
	case o.Errno == syscall.ENOSYS:
		remedies = append(remedies, "Linux 5.12 or newer, whose mount_setattr(2) and the calls before it are needed")
	case len(remedies) > 0:
	case o.Mount && (o.Errno == syscall.EPERM || o.Errno == syscall.EACCES):
		remedies = append(remedies, "start this program where no Landlock domain and no security module refuses mount(2) to it")
	default:
		remedies = append(remedies, "a kernel with CONFIG_USER_NS, and a container or service manager that lets this process use it")
	}
	return strings.Join(remedies, "; ")
}

func readSwitches() switches {
	s := switches{filtered: statusField("Seccomp") == 2}
	for _, c := range []struct{ file, bad, remedy string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "an AppArmor profile for this program that allows userns, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if text, err := os.ReadFile(c.file); err == nil && strings.TrimSpace(string(text)) == c.bad {
			s.sysctls = append(s.sysctls, c.remedy)
		}
	}
	if text, err := os.ReadFile("/proc/thread-self/mountinfo"); err == nil {
		s.masked = coversProc(string(text))
	}
	return s
}

// coversProc reports whether something is mounted below /proc, by the text of mountinfo
// (proc_pid_mountinfo(5)). What the kernel made to be mounted on does not count
// (mnt_already_visible of fs/namespace.c looks past directories that are always empty).
func coversProc(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasPrefix(f[4], "/proc/") {
			continue
		}
		switch f[4] {
		case "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd", "/proc/openprom":
		default:
			return true
		}
	}
	return false
}
