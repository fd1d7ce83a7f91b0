package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

// forwardFD is the socket that the signal handler writes to.
//
//lint:ignore U1000 the handler, in assembly, reads it
var forwardFD uint64

// handlerAddr and restorerAddr return the addresses of the two pieces of
// assembly: a handler that sends its signal's number over forwardFD, but for the SIGCONT of a stopper (stop_linux.go), and the
// return from it (amd64's kernel has no default, sigreturn(2)).
func handlerAddr() uintptr
func restorerAddr() uintptr

// takeSignals installs the stage's handlers. The stage forwards every
// signal that can be caught, but for those that only its own fault can raise:
// those end it, and with it the sandbox.
//
//go:norace
//go:nocheckptr
func takeSignals(fd uintptr) {
	forwardFD = uint64(fd)
	for n := syscall.Signal(1); n <= 64; n++ {
		a := sys.SigAction{Handler: handlerAddr(), Flags: sys.SA_SIGINFO | sys.SA_RESTORER | sys.SA_ONSTACK | sys.SA_RESTART, Restorer: restorerAddr(), Mask: ^uint64(0)}
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD:
			continue
		case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS:
			a = sys.SigAction{}
		}
		sys.Call(syscall.SYS_RT_SIGACTION, uintptr(n), sys.Addr(&a), 0, 8, 0, 0)
	}
}

// polledSignals is where the stage polls for its first signal, beside what monitor or monitorWarden waits for.
const polledSignals = 5

// pollNothing returns what the stage polls, with nothing in it but the first signal.
//
//go:norace
//go:nocheckptr
func pollNothing() *[polledSignals + 1]sys.PollFD {
	for i := range polledSignals {
		st.poll[i] = sys.PollFD{FD: -1, Events: sys.POLLIN}
	}
	return &st.poll
}

// admitSignals has the stage's handlers forward the signals that have come, and those that follow.
//
//go:norace
//go:nocheckptr
func admitSignals() {
	if fd := st.poll[polledSignals].FD; fd >= 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		st.poll[polledSignals] = sys.PollFD{FD: -1}
		takeSignals(st.stageSock)
		letSignalsIn()
	}
}

//go:norace
//go:nocheckptr
func letSignalsIn() {
	none := uint64(0)
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&none), 0, 8, 0, 0)
}
