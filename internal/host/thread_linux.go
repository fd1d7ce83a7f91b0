package host

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// layers is how many rulesets of Landlock a command is in: init's, the scopes of a session, and the command's own there.
const layers = 3

// tryThread takes from the facts what the kernel has for a process a limited number of times: layers of Landlock, of which a thread may be in 16
// (landlock(7), "Ruleset layers"), and listeners of seccomp, of which one may be around it (seccomp(2), EBUSY).
func (f *Facts) tryThread() {
	if !f.Landlock.Yes() && !f.Notify.Yes() {
		return
	}
	var layer, listener error
	onThread(func() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return // none is known to be missing; the start will say so
		}
		if f.Landlock.Yes() {
			layer = tryLayers()
		}
		if f.Notify.Yes() {
			listener = tryListener()
		}
	})
	f.Landlock, f.Notify = f.Landlock.ofLayers(layer), f.Notify.ofListener(listener)
}

func (f Fact) ofLayers(err error) Fact {
	if errors.Is(err, unix.E2BIG) {
		f.Answer, f.Reason = No, "landlock_restrict_self(2): "+unix.E2BIG.Error()+": this process is in too many layers of Landlock, of which the kernel has 16"
		f.Remedy = "start this program in fewer sandboxes within one another"
	}
	return f
}

// listenerRemedy is what helps where another program is the supervisor.
const listenerRemedy = "start this program outside of that one (LXD, Incus: no security.syscalls.intercept option, as by lxc config set NAME security.syscalls.intercept.mknod=false && lxc restart NAME; a sandbox around this one: its commands from the same harness)"

func (f Fact) ofListener(err error) Fact {
	if errors.Is(err, unix.EBUSY) {
		f.Answer, f.Reason = No, "seccomp(2): "+unix.EBUSY.Error()+": another program supervises this one, and the kernel has one listener for both"
		f.Remedy = listenerRemedy
	}
	return f
}

// onThread calls f on a thread that ends with it, since what f does to the thread cannot be undone.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // locked: the thread ends with the goroutine
		}
		onThread(f) // the first thread of a process never ends; it is held meanwhile
		runtime.UnlockOSThread()
	}()
	<-done
}

func tryLayers() error {
	set, err := landlock.Build(landlock.Ruleset{
		UnhandledFS: landlock.FSAll &^ landlock.FSMakeFifo, UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll,
		Paths: []landlock.PathRule{{Path: "/", Access: landlock.FSMakeFifo}},
	})
	if err != nil {
		return err
	}
	defer set.Close()
	for range layers {
		if err := landlock.RestrictThread(int(set.Fd()), 0); err != nil {
			return err
		}
	}
	return nil
}

func tryListener() error {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	fd, errno := setFilter(listenerFlags, &unix.SockFprog{Len: 1, Filter: &allow})
	if errno != 0 {
		return errno
	}
	return unix.Close(fd)
}

// setFilter loads a filter on the calling thread; nil asks whether the kernel knows the flags, which it judges before the program's address.
func setFilter(flags uintptr, program *unix.SockFprog) (int, unix.Errno) {
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program)))
	return int(fd), errno
}
