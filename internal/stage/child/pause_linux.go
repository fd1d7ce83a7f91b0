package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// In a pause of a session everything is stopped but init: wardens too, so that no supervisor acts for a tool, and none sees its tool stop. The harness
// stops what it finds in /proc, parents before their children, and continues the children first. Init does what the harness cannot:
//
//   - It refuses commands, and forks nothing.
//   - It waits for no stop. Those of wardens are the pause's; one that a tool has stopped is still to be seen when the pause is over.
//   - It stops all at once, whatever the tools do: kill(2) with -1 holds the lock that fork(2) needs to add a process, and a fork that has begun is
//     given the signal (copy_process, and signal->multiprocess in __send_signal_locked). It does so only as the first process of a pid namespace,
//     whence that reaches no process outside. Else there is the harness's search alone.

// takePause carries out what the harness asks for in st.request, and answers.
//
//go:norace
//go:nocheckptr
func takePause() {
	switch st.request.Kind {
	case wire.RequestPause:
		st.paused = sys.WUNTRACED
	case wire.RequestStop:
		if st.hdr.Flags&wire.FlagPIDNS != 0 && st.initPID == 1 {
			sys.Call(syscall.SYS_KILL, ^uintptr(0), uintptr(syscall.SIGSTOP), 0, 0, 0, 0)
		}
	case wire.RequestResume:
		st.paused = 0
		reapWardens()
	}
	sys.Call(syscall.SYS_SENDTO, st.session, sys.Addr(&st.digits), 1, sys.MSG_NOSIGNAL|sys.MSG_DONTWAIT, 0, 0)
}
