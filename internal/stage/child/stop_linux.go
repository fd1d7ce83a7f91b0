package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

// The stage stops when the tool has stopped, so that a shell's job control sees it, and goes on with it: when its caller sends
// SIGCONT, which the stage passes to the tool, or when a process inside has continued the tool. Of that a record of init tells, which a stopped
// stage does not read. So a child of the stage, the stopper, stops it and continues it as soon as there is something to read. If the stage stopped
// itself, a record that came just before would be missed.
//
// A tool must gain no time by a stop: the stage is continued at its deadline, at the harness's death and at init's end, too, by the stopper
// and, if that was killed, by the kernel (wakeAtDeadline, PR_SET_PDEATHSIG).

// stop stops the stage and returns when it goes on. Where the deadline would not continue it, or there can be no stopper, it does not stop.
//
//go:norace
//go:nocheckptr
func stop() {
	var pipe [2]int32
	admitSignals()
	if st.sleepless || saysMore() {
		return
	}
	if _, errno := sys.Call(syscall.SYS_PIPE2, sys.Addr(&pipe), syscall.O_CLOEXEC, 0, 0, 0, 0); errno != 0 {
		return
	}
	before := int32(0)
	sys.Call(syscall.SYS_PRCTL, syscall.PR_GET_PDEATHSIG, sys.Addr(&before), 0, 0, 0, 0)
	sys.Call(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGCONT), 0, 0, 0, 0)
	stopper, errno := cloneHelper(uintptr(pipe[1]))
	sys.Call(syscall.SYS_CLOSE, uintptr(pipe[1]), 0, 0, 0, 0, 0)
	if errno == 0 && awaitStop(pipe[0]) {
		// In no other case: it would die between stopping the stage and continuing it.
		sys.Call(syscall.SYS_KILL, stopper, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		sys.Call(syscall.SYS_WAIT4, stopper, 0, sys.WALL, 0, 0, 0)
	}
	sys.Call(syscall.SYS_CLOSE, uintptr(pipe[0]), 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(before), 0, 0, 0, 0)
}

// saysMore reports whether something is to be read or has ended of what monitor or monitorWarden waits for.
//
//go:norace
//go:nocheckptr
func saysMore() bool {
	n, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), sys.Addr(&st.zeroTime), 0, 0, 0)
	return errno == 0 && n > 0
}

// cloneHelper makes the stopper, a fork, or, of a pipe of 0, the relay. Signals are blocked in it: it is in the stage's process group until it has left it.
//
//go:noinline
//go:norace
//go:nocheckptr
func cloneHelper(pipe uintptr) (uintptr, uintptr) {
	roomOnStack()
	all, before := ^uint64(0), uint64(0)
	stage, _ := sys.Call(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&all), sys.Addr(&before), 8, 0, 0)
	pid, errno := sys.Call(syscall.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		// With a Go runtime around the stage (init in hook_linux.go) its monitor may just have asked this goroutine to
		// yield, by the guard of its stack (runtime/proc.go, preemptone). The stopper is one thread, and cannot yield to another:
		// the next function's stack check would never return.
		passStackChecks()
		sys.Call(syscall.SYS_PRCTL, sys.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
		sys.Call(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0) // what stops the group does not stop it
		if parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0); parent != stage {
			endBetween()
		}
		if pipe == 0 {
			relayMain()
		}
		stopperMain(stage, pipe)
	}
	sys.Call(syscall.SYS_RT_SIGPROCMASK, sys.SIG_SETMASK, sys.Addr(&before), 0, 8, 0, 0)
	return pid, errno
}

// stopperMain is the stopper's whole life.
//
//go:norace
//go:nocheckptr
func stopperMain(stage, pipe uintptr) {
	sys.Call(syscall.SYS_KILL, stage, uintptr(syscall.SIGSTOP), 0, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, pipe, 0, 0, 0, 0, 0)
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&st.poll), uintptr(len(st.poll)), 0, 0, 0, 0); errno != uintptr(syscall.EINTR) {
			break
		}
	}
	// Of the stage's thread, and so not one with a SIGCONT of the caller's, which is the process's; see forward.
	sys.Call(syscall.SYS_TGKILL, stage, stage, uintptr(syscall.SIGCONT), 0, 0, 0)
	endBetween()
}

// awaitStop returns when the stopper has stopped the stage and the stage goes on, or when the run is to end, which the stopper may not live to see.
//
//go:norace
//go:nocheckptr
func awaitStop(pipe int32) (stopped bool) {
	const socket = 1 // as in monitor and monitorWarden: what is told there waits
	p := st.poll
	p[socket] = sys.PollFD{FD: pipe, Events: sys.POLLIN}
	for {
		if _, errno := sys.Call(syscall.SYS_PPOLL, sys.Addr(&p), uintptr(len(p)), 0, 0, 0, 0); errno == 0 {
			return p[socket].Revents != 0
		}
	}
}
