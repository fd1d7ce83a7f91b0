package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// A Trial is what came of making namespaces. Package stage makes them; the facts that follow from it are judged here.
type Trial struct {
	Trampoline  error         // why a stage could not be executed without a Go runtime; nil: one was
	Shortage    error         // a lack of descriptors, processes or memory, which says nothing about this host; the rest does not count then
	Refused     string        // the step that failed; "": the namespaces were made
	Obstacle    Obstacle      // of that step
	WithoutUser bool          // root made the namespaces, but not with a user namespace
	NoCgroup    bool          // they were made, but not with a cgroup namespace
	SharedPIDs  bool          // they were made, but not with a pid namespace: Obstacle is what refused a new /proc
	NetApart    bool          // they were made, the network's in another user namespace
	Chroot      bool          // they were made, with a root by chroot(2)
	Overlay     syscall.Errno // of mounting an overlayfs
}

// killed says that nothing is tried under a filter that kills.
func (a Around) killed() string {
	return "not tried: the system call filter around this program kills a process that makes " + a.Killing
}

// NotTried is the trial where the filter around this process would kill its processes, or where a stage has no pidfd of the harness, whose end it
// is to see; false: one is made.
func (f Facts) NotTried() (Trial, bool) {
	reason, not := f.Around.killed(), f.Around.Killing != ""
	if !not && f.PIDFD.Answer == No {
		reason, not = "not tried: "+f.PIDFD.Reason, true
	}
	return Trial{Trampoline: errors.New(reason), Refused: reason, Obstacle: Obstacle{Errno: syscall.EPERM}}, not
}

// Tried returns the facts with those that a trial shows: Image, Namespaces, UserNS, NoCgroupNS, SharedPIDs, NetApart, Chroot and Overlay.
func (f Facts) Tried(t Trial) Facts {
	f.Image = Fact{Name: f.Image.Name, Answer: Yes, Reason: "its image was executed"}
	if t.Trampoline != nil {
		f.Image = Fact{Name: f.Image.Name, Answer: No, Reason: t.Trampoline.Error(), Remedy: trampolineRemedy(t.Trampoline)}
	}
	namespaces, overlay := Fact{Name: f.Namespaces.Name}, Fact{Name: f.Overlay.Name}
	switch {
	case t.Shortage != nil:
		f.Shortage = short(t.Shortage)
		namespaces.Reason, overlay.Reason = t.Shortage.Error(), t.Shortage.Error()
		namespaces.Remedy, overlay.Remedy = remedyOf(t.Shortage), remedyOf(t.Shortage)
	case t.Refused != "":
		namespaces.Answer, namespaces.Reason, namespaces.Remedy = No, t.Refused, t.Obstacle.remedy(f.Around)
		overlay.Answer, overlay.Reason, overlay.Remedy = No, "there are no namespaces to mount it in", namespaces.Remedy
	case !f.KernelAtLeast(6, 6):
		// It mounts, and then some directories cannot be made: EIO.
		overlay.Answer, overlay.Reason = No, "a tmpfs holds no user xattrs, which the upper layer needs"
		overlay.Remedy = "Linux 6.6 or newer"
	case t.Overlay != 0:
		overlay.Answer, overlay.Reason = No, fmt.Sprintf("mounting one failed with errno %d", t.Overlay)
		overlay.Remedy = "Linux 5.11 or newer, with the overlay module loaded (modprobe overlay)"
	default:
		overlay.Answer, overlay.Reason = Yes, "one was mounted"
	}
	if t.Refused == "" && t.Shortage == nil {
		namespaces.Answer, namespaces.Reason = Yes, "they were made, with a root, a /proc and a devpts"
		if t.SharedPIDs {
			namespaces.Reason = fmt.Sprintf("they were made, but no pid namespace: mount a new /proc: %v", t.Obstacle.Errno)
			namespaces.Remedy = t.Obstacle.remedy(f.Around)
		}
		if t.NetApart {
			namespaces.Reason += "; the network's in another user namespace, since root has no CAP_NET_ADMIN"
		}
		if t.Chroot {
			namespaces.Reason += "; their root is one by chroot(2), since pivot_root(2) is refused"
		}
	}
	if t.Refused == "" && !t.WithoutUser {
		f.Memory = f.Memory.inNamespace()
	}
	if f.Notify.Yes() && f.Memory.Answer == No {
		f.Notify = Fact{Name: f.Notify.Name, Answer: No, Reason: "the supervisor cannot read what a tool's call asks for: " + f.Memory.Reason, Remedy: f.Memory.Remedy}
	}
	f.Namespaces, f.Overlay, f.UserNS, f.NoCgroupNS = namespaces, overlay, f.UserNS && !t.WithoutUser, t.NoCgroup
	f.SharedPIDs, f.NetApart, f.Chroot = t.SharedPIDs, t.NetApart, t.Chroot
	f.Obstacle = t.Obstacle
	return f
}

const shortageRemedy = "try again when there are descriptors, processes, namespaces, memory and keys (ulimit -n, ulimit -u, kernel.pid_max, the cgroup's pids.max and memory.max, user.max_user_namespaces, kernel.keys.maxkeys), or outside of a sandbox that allows no more namespaces (bubblewrap's --disable-userns, as Flatpak's)"

// short says what helps, too. It is what Facts.Shortage holds.
func short(err error) error { return fmt.Errorf("%w (remedy: %s)", err, remedyOf(err)) }

func remedyOf(shortage error) string {
	switch {
	case errors.Is(shortage, syscall.ETOOMANYREFS):
		return messagesRemedy
	case errors.Is(shortage, syscall.EFBIG):
		return fileSizeRemedy
	}
	return shortageRemedy
}

// fileSizeRemedy: the kernel applies the limit to memfds too, and their size can be set by no other call (inode_newsize_ok of fs/attr.c).
const fileSizeRemedy = "raise this program's RLIMIT_FSIZE to 1 MiB or more (ulimit -f, LimitFSIZE= of systemd): a start writes its program into memory as a file; Limits.Rlimits.FSize limits the tool alone"

const messagesRemedy = "raise this program's hard limit on descriptors (ulimit -Hn), or end the program of the same user that has more than that in messages (unix(7), ETOOMANYREFS)"

// ShortOf returns a start's error with what helps, if it is a shortage.
func ShortOf(err error) error {
	if !IsShortage(err) {
		return err
	}
	return short(err)
}

// IsShortage reports whether an error is a lack of descriptors, processes, memory, keys or size of files: of this moment, or of a limit of this process's. A tool can
// bring one about, so it must not count as something that the host does not have.
func IsShortage(err error) bool {
	return errors.Is(err, ErrKilled) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.ETOOMANYREFS) || // descriptors in messages (unix(7))
		errors.Is(err, syscall.EFBIG) // RLIMIT_FSIZE
}

// ErrKilled is no answer of the kernel's: another process has killed the trial's, or the kernel for want of memory.
var ErrKilled = errors.New("a process of the trial was killed each time")

// UsedUp reports whether an error says that a quota on namespaces is used up: by those of other processes, or by those that the kernel has not
// taken down yet (namespaces(7)). A quota of 0 forbids them.
func UsedUp(err error) bool {
	if !errors.Is(err, syscall.ENOSPC) {
		return false
	}
	for _, kind := range []string{"user", "mnt", "pid", "ipc", "uts", "net"} {
		text, err := os.ReadFile("/proc/sys/user/max_" + kind + "_namespaces")
		if err == nil && strings.TrimSpace(string(text)) == "0" {
			return false
		}
	}
	return true
}

func trampolineRemedy(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "sysctl vm.memfd_noexec=1, or a security module that lets this program execute a memfd; without it a start takes a millisecond more"
	}
	return "none needed: without it a start takes a millisecond more"
}

// A TUNTrial is what came of making a TUN device in a network namespace.
type TUNTrial struct {
	Failed     error // why it could not be tried; nil: it was
	Open, Make syscall.Errno
}

// TUNPath is the device that a TUN device is made with.
const TUNPath = "/dev/net/tun"

// TriedTUN returns the facts with what a trial shows of TUN.
func (f Facts) TriedTUN(t TUNTrial) Facts {
	fact := Fact{Name: f.TUN.Name, Answer: No}
	switch {
	case !f.Namespaces.Yes():
		fact.Answer, fact.Reason, fact.Remedy = f.Namespaces.Answer, "there is no network namespace to make one in", f.Namespaces.Remedy
	case t.Failed != nil:
		fact.Answer, fact.Reason, fact.Remedy = Unknown, t.Failed.Error(), "none needed: a capture gives way to the proxies"
		if IsShortage(t.Failed) || UsedUp(t.Failed) {
			f.Shortage = short(t.Failed)
		}
	case t.Open == syscall.ENOENT || t.Open == syscall.ENXIO || t.Open == syscall.ENODEV:
		fact.Reason, fact.Remedy = fmt.Sprintf("%s: %v", TUNPath, t.Open), "the tun module (modprobe tun), and in a container its device (Docker: --device /dev/net/tun)"
	case t.Open != 0:
		fact.Reason, fact.Remedy = fmt.Sprintf("%s: %v", TUNPath, t.Open), "chmod 0666 "+TUNPath+", which is its usual mode; in a container a rule that allows the device"
	case t.Make != 0:
		fact.Reason, fact.Remedy = fmt.Sprintf("making one: %v", t.Make), "a kernel with CONFIG_TUN, and a security module that lets a user namespace have devices"
	default:
		fact.Answer, fact.Reason = Yes, "one was made"
	}
	f.TUN = fact
	return f
}
