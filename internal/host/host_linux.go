package host

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// Read reads the facts that the kernel tells without trying anything out.
// Namespaces, Overlay, TUN and Image stay unknown.
func Read() Facts {
	f := Facts{UID: os.Geteuid(), GID: os.Getegid(), UserNS: true, Around: readAround()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		f.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	f.Namespaces.Name, f.Overlay.Name, f.Image.Name = "namespaces", "overlayfs in a user namespace", "a stage without a Go runtime"
	f.TUN.Name = "TUN devices"
	if f.Around.Killing != "" {
		return f.underKilling()
	}
	f.Landlock = readLandlock(&f.Shortage)
	f.Seccomp = readSeccomp()
	f.Notify = readNotify()
	f.Memory, f.ByFile = readMemory(&f.Shortage)
	f.Take = readTake(&f.Shortage)
	f.Keyring = readKeyring()
	f.Calls, f.PIDFD = readCalls(&f.Shortage), readPIDFD(&f.Shortage)
	f.tryThread()
	return f
}

// underKilling are the facts where the filter kills who asks: everything is taken to be missing.
func (f Facts) underKilling() Facts {
	no := Fact{Answer: No, Reason: f.Around.killed(), Remedy: Obstacle{Errno: unix.EPERM}.remedy(f.Around)}
	for _, fact := range []struct {
		at   *Fact
		name string
	}{{&f.Landlock, landlockName}, {&f.Seccomp, seccompName}, {&f.Notify, notifyName}, {&f.Memory, memoryName}, {&f.Take, takeName}, {&f.Keyring, keyringName}, {&f.Calls, callsName}, {&f.PIDFD, pidfdName}} {
		*fact.at = no
		fact.at.Name = fact.name
	}
	return f
}

// readCalls makes those of the calls of a start that kernels or filters may lack.
func readCalls(shortage *error) Fact {
	fd, err := unix.MemfdCreate("holdfast", unix.MFD_CLOEXEC)
	if err != nil {
		return callFact(callsName, "memfd_create(2)", "3.17", err, shortage)
	}
	unix.Close(fd)
	return callFact(callsName, "close_range(2)", "5.9", unix.CloseRange(math.MaxUint32, math.MaxUint32, 0), shortage) // no descriptor has that number
}

func readPIDFD(shortage *error) Fact {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		unix.Close(fd)
	}
	return callFact(pidfdName, "pidfd_open(2)", "5.3", err, shortage)
}

// callFact judges what a call returned that Linux has since a version.
func callFact(name, call, since string, err error, shortage *error) Fact {
	switch {
	case err == nil:
		return Fact{Name: name, Answer: Yes, Reason: call + " works"}
	case IsShortage(err):
		*shortage = short(fmt.Errorf("%s: %w", call, err))
		return Fact{Name: name, Reason: call + ": " + err.Error(), Remedy: shortageRemedy}
	}
	return Fact{Name: name, Answer: No, Reason: call + ": " + err.Error(), Remedy: "Linux " + since + " or newer, and a system call filter that allows " + call}
}

func readLandlock(shortage *error) Fact {
	f := Fact{Name: landlockName}
	abi, err := landlock.ABI()
	var no *landlock.UnsupportedError
	switch {
	case err == nil:
		f.Answer, f.Value, f.Reason = Yes, abi, fmt.Sprintf("ABI %d", abi)
	case errors.As(err, &no):
		f.Answer, f.Reason, f.Remedy = No, no.Reason, no.Remedy
	default:
		f.Reason = err.Error()
	}
	if err := openat2(); IsShortage(err) {
		f.Answer, f.Reason, f.Remedy, *shortage = Unknown, "openat2(2): "+err.Error(), shortageRemedy, short(err)
	} else if err != nil && f.Answer == Yes {
		f.Answer, f.Reason = No, "openat2(2), by which its rules are opened: "+err.Error()
		f.Remedy = "a service manager's or container's filter that allows openat2 (systemd: RestrictSUIDSGID=no)"
	}
	return f
}

// openat2 tries to open a path without following links, as every rule is.
func openat2() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// action asks the kernel whether it knows a filter's verdict (seccomp(2),
// SECCOMP_GET_ACTION_AVAIL).
func action(verdict uint32) error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&verdict)))
	if errno != 0 {
		return errno
	}
	return nil
}

func readSeccomp() Fact {
	err := action(unix.SECCOMP_RET_KILL_PROCESS)
	if err == unix.EINVAL { // gVisor has filters and not the question (pkg/sentry/syscalls/linux/sys_seccomp.go)
		if _, errno := setFilter(0, nil); errno == unix.EFAULT {
			return Fact{Name: seccompName, Answer: Yes, Reason: "the kernel takes filters"}
		}
	}
	return seccompFact(err)
}

const landlockName, seccompName, notifyName, keyringName, callsName, pidfdName = "Landlock", "seccomp filters", "seccomp user notification", "session keyrings", "calls of a start", "pidfds"

// seccompRefused is what helps where seccomp(2) is refused, and not unknown.
const seccompRefused = "a system call filter that allows seccomp(2) (systemd: no SystemCallFilter= for this program's unit)"

func seccompFact(err error) Fact {
	f := Fact{Name: seccompName}
	switch err {
	case nil:
		f.Answer, f.Reason = Yes, "the kernel kills by filter"
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL:
		f.Answer, f.Reason, f.Remedy = No, "seccomp(2): "+err.Error(), "a kernel with CONFIG_SECCOMP_FILTER, 4.14 or newer"
	default:
		f.Reason, f.Remedy = "seccomp(2): "+err.Error(), seccompRefused
	}
	return f
}

// listenerFlags are those of the supervisor's filter: SECCOMP_FILTER_FLAG_NEW_LISTENER, and SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19).
const listenerFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | 1<<5

// readNotify wants SECCOMP_RET_USER_NOTIF and listenerFlags. EFAULT means that
// they are known.
func readNotify() Fact {
	if err := action(unix.SECCOMP_RET_USER_NOTIF); err != nil {
		return notifyFact(err)
	}
	_, errno := setFilter(listenerFlags, nil)
	if errno == unix.EINVAL { // the kernel that has the action knows the first of the flags
		if _, errno := setFilter(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, nil); errno == unix.EINVAL {
			return Fact{Name: notifyName, Answer: No, Reason: "seccomp(2): the system call filter around this program refuses listeners, as LXD's does where it intercepts calls", Remedy: listenerRemedy}
		}
	}
	f := notifyFact(errno)
	if call, err := refusedLook(); f.Yes() && call != "" {
		f.Answer, f.Reason = No, call+", by which the supervisor looks at files: "+err.Error()
		f.Remedy = "a system call filter that allows " + call + " (older Docker, containerd and libseccomp do not know it; systemd: no RestrictSUIDSGID=)"
	}
	return f
}

// refusedLook tries what the supervisor serves a call by. A kernel with listenerFlags has all of it; a filter around this
// program may be older, or a filter for openat2's arguments, which no filter sees.
func refusedLook() (call string, err error) {
	var st unix.Statx_t
	root, _ := unix.BytePtrFromString("/")
	_, _, faccessat2 := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(unix.AT_FDCWD&math.MaxUint), uintptr(unsafe.Pointer(root)), unix.F_OK, 0, 0, 0)
	switch err := openat2(); {
	case err != nil && !IsShortage(err):
		return "openat2(2)", err
	case faccessat2 != 0:
		return "faccessat2(2)", faccessat2
	}
	if err := unix.Statx(unix.AT_FDCWD, "/", unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st); err != nil {
		return "statx(2)", err
	}
	return "", nil
}

func notifyFact(err error) Fact {
	f := Fact{Name: notifyName}
	switch err {
	case unix.EFAULT:
		f.Answer, f.Reason = Yes, "the kernel knows WAIT_KILLABLE_RECV"
	case unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP:
		f.Answer, f.Reason, f.Remedy = No, "the kernel does not know WAIT_KILLABLE_RECV", "Linux 5.19 or newer"
	default:
		f.Answer, f.Reason, f.Remedy = No, "seccomp(2): "+err.Error(), seccompRefused
	}
	return f
}

func readKeyring() Fact {
	f := Fact{Name: keyringName}
	switch _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err {
	case nil, unix.ENOKEY:
		f.Answer, f.Reason = Yes, "keyctl(2) answers"
	case unix.ENOSYS, unix.EPERM, unix.EACCES:
		f.Answer, f.Reason, f.Remedy = No, "keyctl(2): "+err.Error(), "none needed: what is refused here is refused to the tool"
	default:
		f.Answer, f.Reason = Yes, "keyctl(2): "+err.Error()
	}
	return f
}

// statusField reads a number from this process's /proc status; -1: none.
func statusField(name string) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(rest)); err == nil {
				return n
			}
		}
	}
	return -1
}
