package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// killTree kills what the tool left behind where no pid namespace does it:
// a process that loses its parent becomes init's child (PR_SET_CHILD_SUBREAPER), so
// killing all children until there are none reaches everybody. The stage does
// the same when init is gone. The file that lists the children is given by a
// directory's descriptor and a path.
//
// A child that is the first in the list round after round does not end, though it is
// killed: after some rounds killTree sleeps in between, and after some twenty seconds
// it gives up and returns that child's number, or 1 if it was not listed; else 0.
//
// It writes nothing of st: the keeper, which has the stage's memory, may be at it when the stage begins.
//
//go:norace
//go:nocheckptr
func killTree(dir, file uintptr) (stuck uintptr) {
	// From here on the dead are gone at once (sigaction(2), SIGCHLD): they would be
	// listed before the living, who could make them faster than they are reaped.
	action := sys.SigAction{Handler: 1} // SIG_IGN
	sys.Call(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), sys.Addr(&action), 0, 8, 0, 0)
	const yields, spins, patience = 10, 200, 2200
	last, still := uintptr(0), 0
	for round := 1; ; round++ {
		dead, errno := uintptr(1), uintptr(0)
		for dead != 0 && errno == 0 { // those of before
			dead, errno = sys.Call(syscall.SYS_WAIT4, ^uintptr(0), 0, sys.WNOHANG|sys.WALL, 0, 0, 0)
		}
		if errno == uintptr(syscall.ECHILD) {
			return 0
		}
		fd, errno := sys.Call(syscall.SYS_OPENAT, dir, file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			if int(st.toolPID) > 0 {
				sys.Call(syscall.SYS_KILL, st.toolPID, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
			}
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
			continue
		}
		first := killListed(fd)
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		if still++; first != last {
			last, still = first, 0
		}
		switch {
		case still > patience:
			return max(first, 1)
		case still > spins:
			if still%100 == 0 { // once a second
				killBelow(dir, 0)
			}
			retry := [2]int64{0, retryMS * 1e6}
			sys.Call(syscall.SYS_NANOSLEEP, sys.Addr(&retry), 0, 0, 0, 0, 0)
		case round > yields: // they are made as fast as they are killed
			freezeBelow(dir, belowAll)
			killBelow(dir, 0)
		default:
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
		}
	}
}

// killListed kills the processes whose numbers stand in a file, each followed by a space.
// A number cut off by the buffer's end is left for the next round. It returns the first of
// them. Most runs leave no process, and need no room for the buffer.
//
//go:noinline
//go:norace
//go:nocheckptr
func killListed(fd uintptr) (first uintptr) {
	var list [4096]byte
	n, errno := sys.Call(syscall.SYS_READ, fd, sys.Addr(&list), unsafe.Sizeof(list), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	pid := uintptr(0)
	for i := uintptr(0); i < n && i < uintptr(len(list)); i++ {
		if c := list[i]; c >= '0' && c <= '9' {
			pid = pid*10 + uintptr(c-'0')
			continue
		}
		if pid > 1 {
			sys.Call(syscall.SYS_KILL, pid, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		}
		if first == 0 {
			first = pid
		}
		pid = 0
	}
	return first
}

//go:norace
//go:nocheckptr
func killInit() {
	sys.Call(sys.SYS_PIDFD_SEND_SIGNAL, uintptr(st.pidfd), uintptr(syscall.SIGKILL), 0, 0, 0, 0)
}

// askInit has init end with all that is left: it reads the end of its socket, as of a stage that is gone.
//
//go:norace
//go:nocheckptr
func askInit() {
	sys.Call(syscall.SYS_SHUTDOWN, st.stageSock, syscall.SHUT_WR, 0, 0, 0, 0)
}

// endInitFirst kills init, where with it everything dies, and else asks it. It reports which.
//
//go:norace
//go:nocheckptr
func endInitFirst() (killed bool) {
	if killed = st.hdr.Flags&wire.FlagPIDNS != 0; killed {
		killInit()
	} else {
		askInit()
	}
	return killed
}
