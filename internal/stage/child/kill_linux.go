package child

import (
	"syscall"
	"unsafe"

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
// it gives up, tells the harness which child that is, and returns.
//
//go:norace
//go:nocheckptr
func killTree(dir, file uintptr) {
	// From here on the dead are gone at once (sigaction(2), SIGCHLD): they would be
	// listed before the living, who could make them faster than they are reaped.
	st.action = sys.SigAction{Handler: 1} // SIG_IGN
	sys.Call(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), sys.Addr(&st.action), 0, 8, 0, 0)
	const spins, patience = 200, 2200
	last, still := uintptr(0), 0
	for {
		dead, errno := uintptr(1), uintptr(0)
		for dead != 0 && errno == 0 { // those of before
			dead, errno = sys.Call(syscall.SYS_WAIT4, ^uintptr(0), sys.Addr(&st.waited), sys.WNOHANG|sys.WALL, 0, 0, 0)
		}
		if errno == uintptr(syscall.ECHILD) {
			return
		}
		fd, errno := sys.Call(syscall.SYS_OPENAT, dir, file, syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			if int(st.toolPID) > 0 {
				sys.Call(syscall.SYS_KILL, st.toolPID, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
			}
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
			continue
		}
		n, _ := sys.Call(syscall.SYS_READ, fd, sys.Addr(&st.children), unsafe.Sizeof(st.children), 0, 0, 0)
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		first := killListed(n)
		if still++; first != last {
			last, still = first, 0
		}
		switch {
		case still > patience:
			reportStuck(first)
			return
		case still > spins:
			if still%100 == 0 { // once a second
				killBelow(dir, 0)
			}
			st.retry = [2]int64{0, retryMS * 1e6}
			sys.Call(syscall.SYS_NANOSLEEP, sys.Addr(&st.retry), 0, 0, 0, 0, 0)
		default:
			sys.Call(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0)
		}
	}
}

// killListed kills the processes whose numbers stand in the first n bytes of
// st.children, each followed by a space. A number cut off by the buffer's end
// is left for the next round. It returns the first of them.
//
//go:norace
//go:nocheckptr
func killListed(n uintptr) (first uintptr) {
	pid := uintptr(0)
	for i := uintptr(0); i < n && i < uintptr(len(st.children)); i++ {
		if c := st.children[i]; c >= '0' && c <= '9' {
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
