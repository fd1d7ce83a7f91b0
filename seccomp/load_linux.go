package seccomp

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// load does what Load says. The order is the kernel's: without no_new_privs an unprivileged
// seccomp(2) fails with EACCES. Both act on one thread, so the goroutine must stay on it in
// between; TSYNC gives the other threads no_new_privs as well as the filter.
func (p Program) load(o LoadOptions) (int, error) {
	if _, err := Native(); err != nil {
		return -1, &LoadError{Step: "load", Err: err}
	}
	runtime.LockOSThread()
	if !o.ThreadOnly {
		defer runtime.UnlockOSThread()
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, &LoadError{Step: "no_new_privs", Err: err}
	}
	code := p.Bytes()
	prog := unix.SockFprog{Len: uint16(p.Len()), Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(code)))}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, o.flags(), uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	switch {
	case errno == unix.ENOSYS:
		return -1, &LoadError{Step: "load", Err: errors.Join(errno, errors.ErrUnsupported)}
	case errno != 0:
		return -1, &LoadError{Step: "load", Err: errno}
	case o.Listener:
		return int(r), nil
	case r != 0: // seccomp(2): on error with TSYNC alone, the id of the thread that could not be synchronized, and no errno
		return -1, &LoadError{Step: "synchronize threads", Thread: int(r), Err: unix.ESRCH}
	}
	return -1, nil
}

// flags returns the flags of seccomp(2). With a listener, a positive result is its descriptor,
// so a failed TSYNC must come as an errno instead (SECCOMP_FILTER_FLAG_TSYNC_ESRCH, Linux
// 5.7).
func (o LoadOptions) flags() uintptr {
	flags := uintptr(0)
	if !o.ThreadOnly {
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC
	}
	if o.Listener {
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		if !o.ThreadOnly {
			flags |= unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
		}
	}
	if o.LogRefused {
		flags |= unix.SECCOMP_FILTER_FLAG_LOG
	}
	return flags
}
