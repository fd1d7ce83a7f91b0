package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// startTimer makes the timer of the deadline; -1: there is no deadline.
//
//go:norace
//go:nocheckptr
func startTimer() int32 {
	if st.hdr.DeadlineMS <= 0 {
		return -1
	}
	fd, errno := sys.Call(sysTimerfdCreate, 1, sys.TFD_CLOEXEC, 0, 0, 0, 0) // CLOCK_MONOTONIC
	st.timer = [4]int64{0, 0, st.hdr.DeadlineMS / 1000, st.hdr.DeadlineMS % 1000 * 1e6}
	if errno == 0 {
		_, errno = sys.Call(sysTimerfdSettime, fd, 0, sys.Addr(&st.timer), 0, 0, 0)
	}
	check(0, errno)
	wakeAtDeadline()
	return int32(fd)
}

// wakeAtDeadline makes a timer whose signal continues a stage that is stopped
// then, again every second in case it stops in between. It takes one of the user's
// pending signals (timer_create(2)), which others may have used up: a stage without
// the timer ends the run at its deadline as well, and does not stop; see stop.
//
//go:norace
//go:nocheckptr
func wakeAtDeadline() {
	event := [8]uint64{1: uint64(syscall.SIGCONT)} // struct sigevent: value, signal, and SIGEV_SIGNAL, which is 0
	id := int32(0)
	_, errno := sys.Call(syscall.SYS_TIMER_CREATE, 1, sys.Addr(&event), sys.Addr(&id), 0, 0, 0)
	st.timer[0] = 1
	if errno == 0 {
		_, errno = sys.Call(syscall.SYS_TIMER_SETTIME, uintptr(id), 0, sys.Addr(&st.timer), 0, 0, 0)
	}
	st.sleepless = errno != 0
}

// reportDeadline tells the harness that the deadline has come.
//
//go:norace
//go:nocheckptr
func reportDeadline() {
	st.message = wire.Message{Kind: wire.MsgDeadline}
	send(0)
}
