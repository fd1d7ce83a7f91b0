package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A process that is killed ends only when its system call does. It may sleep there, uninterruptibly, for a lock that a thread of a process below it holds, as
// splice(2) holds a pipe's; and by its end those would be killed, or become the children of what kills its children. So what waits for such an end
// kills all that is below, after a second: a process that sleeps for a disk has woken by then, as nearly all have.

// killBelow kills every process whose chain of parents leads to top, a child that has not been reaped, or, if that is 0, to this process: such a number is not
// another's. It leaves the keeper alone, which has still to kill what loses its parent. dir is a descriptor of a procfs, or atCwd for /proc. What is new, or
// has another parent meanwhile, is found when it is called again.
//
//go:norace
//go:nocheckptr
func killBelow(dir, top uintptr) { signalBelow(dir, top, uintptr(syscall.SIGKILL), belowAll) }

// What signalBelow signals.
const (
	belowAll      = iota
	belowSpared   // not the wardens of a session's commands, and what is below them
	belowChildren // the children alone
)

// freezeBelow stops every process below this one, in passes until one finds no more than the one before. Where processes are made faster than they are killed,
// as many as their limit allows, each that is killed makes room for another; one that is stopped makes none.
//
//go:norace
//go:nocheckptr
func freezeBelow(dir uintptr, which int) {
	const passes = 50
	before := ^uintptr(0)
	for range passes {
		found := signalBelow(dir, 0, uintptr(syscall.SIGSTOP), which)
		if found == before {
			return
		}
		before = found
	}
}

// signalBelow is killBelow with any signal, and returns how many processes it has found.
//
//go:norace
//go:nocheckptr
func signalBelow(dir, top, sig uintptr, which int) (found uintptr) {
	own, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
	if top == 0 {
		top = own
	}
	path := text(".\x00")
	if dir == atCwd {
		path = text("/proc\x00")
	}
	proc, errno := sys.Call(syscall.SYS_OPENAT, dir, path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	var buf [1024]byte
	for parentOf(proc, own) == parent { // else it is of another pid namespace, which has other numbers
		n, errno := sys.Call(syscall.SYS_GETDENTS64, proc, sys.Addr(&buf), unsafe.Sizeof(buf), 0, 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		for at := uintptr(0); at < n; {
			entry, pid := unsafe.Add(unsafe.Pointer(&buf), at), uintptr(0)
			for c := uintptr(direntName); ; c++ {
				digit := *(*byte)(unsafe.Add(entry, c))
				if digit < '0' || digit > '9' {
					break
				}
				pid = pid*10 + uintptr(digit-'0')
			}
			if pid > 1 && pid != top && pid != st.keeperPID {
				found += signalIfBelow(proc, pid, top, sig, which)
			}
			at += uintptr(*(*uint16)(unsafe.Add(entry, direntSize)))
		}
	}
	sys.Call(syscall.SYS_CLOSE, proc, 0, 0, 0, 0, 0)
	return found
}

// signalIfBelow signals a process if it is below top, and returns 1 then. A number that it goes by is the same process's from before the child was last seen to have that parent until
// after: the process that has the number is held by a pidfd, and has not been reaped.
//
//go:norace
//go:nocheckptr
func signalIfBelow(proc, pid, top, sig uintptr, which int) (found uintptr) {
	first, errno := sys.Call(sys.SYS_PIDFD_OPEN, pid, 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	is := false
	for fd, child := first, pid; ; {
		parent, next := parentOf(proc, child), ^uintptr(0)
		if parent != top && parent > 1 {
			next, _ = sys.Call(sys.SYS_PIDFD_OPEN, parent, 0, 0, 0, 0, 0)
		}
		known := parentOf(proc, child) == parent && unreaped(fd) && (parent == top || unreaped(next))
		if fd != first {
			sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
		if is = known && parent == top; is || !known || which == belowChildren {
			is = is && !(which == belowSpared && (child == st.ready || commandOf(child) >= 0))
			sys.Call(syscall.SYS_CLOSE, next, 0, 0, 0, 0, 0)
			break
		}
		fd, child = next, parent
	}
	if is {
		found = 1
		sys.Call(sys.SYS_PIDFD_SEND_SIGNAL, first, sig, 0, 0, 0, 0)
	}
	sys.Call(syscall.SYS_CLOSE, first, 0, 0, 0, 0, 0)
	return found
}

// unreaped reports whether a pidfd's process has not been reaped, so that its number is not another's. False: fd is none.
//
//go:norace
//go:nocheckptr
func unreaped(fd uintptr) bool {
	_, errno := sys.Call(sys.SYS_PIDFD_SEND_SIGNAL, fd, 0, 0, 0, 0, 0)
	return errno == 0 || errno == uintptr(syscall.EPERM)
}

// parentOf returns the number of a process's parent (proc_pid_stat(5)); 0: it has none here, or is gone.
//
//go:norace
//go:nocheckptr
func parentOf(proc, pid uintptr) (parent uintptr) {
	const file, parentAfter = "/stat\x00", uintptr(len(") S "))
	var digits [24]byte
	var path [64]byte
	n := uintptr(0)
	for d := decimal(&digits, pid); d < uintptr(len(digits)); d++ {
		path[n&63] = digits[d]
		n++
	}
	for i := range len(file) {
		path[n&63] = file[i]
		n++
	}
	fd, errno := sys.Call(syscall.SYS_OPENAT, proc, sys.Addr(&path), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	var buf [128]byte // the process's name, which may have any characters, is the second field, and has 64 at most
	n, _ = sys.Call(syscall.SYS_READ, fd, sys.Addr(&buf), unsafe.Sizeof(buf), 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	n = min(n, unsafe.Sizeof(buf))
	at := n
	for i := range n {
		if buf[i&127] == ')' {
			at = i + parentAfter
		}
	}
	for ; at < n && buf[at&127] >= '0' && buf[at&127] <= '9'; at++ {
		parent = parent*10 + uintptr(buf[at&127]-'0')
	}
	return parent
}
