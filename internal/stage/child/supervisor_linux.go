package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// retryMS is how long init waits before it tries again what a tool's open of a
// FIFO waits for, in milliseconds; see supervisor.Retry.
const retryMS = 10

// supervisorState is the supervisor's memory. Only what is touched takes any.
var supervisorState supervisor.State

// makeSupervisor prepares the supervisor's state if the program has rules for it.
//
//go:norace
//go:nocheckptr
func makeSupervisor() {
	if span := st.plan.Supervisor; span.Len > 0 {
		st.supervisor = &supervisorState
		rules := [3]uintptr{st.planBase + uintptr(span.Off), uintptr(span.Len), uintptr(span.Len)} // a slice's three words
		var own unsafe.Pointer
		if off := st.plan.Own; off != 0 && *(*byte)(atPlan(off)) == '/' {
			own = atPlan(off)
		}
		supervisor.Begin(st.supervisor, *(*[]byte)(unsafe.Pointer(&rules)), own)
		shareMade()
	}
}

// shareMade maps the record of what tools have made. It is init's memory, which is not the tool's to read; the tool's execve closes the file.
//
//go:norace
//go:nocheckptr
func shareMade() {
	fd := st.made
	if n := st.hdr.Made; n > 0 && fd == 0 {
		fd = uintptr(st.reg[(wire.RegGiven+n-1)&(wire.MaxRegisters-1)])
	}
	if fd == 0 {
		return
	}
	at, errno := sys.Call(syscall.SYS_MMAP, 0, supervisor.MadeBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, fd, 0)
	if errno == 0 {
		supervisor.ShareMade(st.supervisor, at, int(fd))
	}
}

// beginSupervisor opens what the supervisor needs, in init, once its listener is there.
//
//go:norace
//go:nocheckptr
func beginSupervisor() bool {
	if st.supervisor == nil || st.listener < 0 {
		return st.supervisor == nil
	}
	if st.request.Terminal > 0 {
		supervisor.GivenTerminal(st.supervisor, uint64(st.toolPID)) // which leads its session: becomeCommands
	}
	return supervisor.Prepare(st.supervisor, int(st.reg[wire.RegProc]), int(st.listener)) == 0
}

// serveSupervisor answers one call of the tool that the supervisor's filter stopped.
//
//go:norace
//go:nocheckptr
func serveSupervisor() {
	takeTurn()
	if supervisor.Serve(st.supervisor) < 0 {
		st.poll[2].FD = -1
	}
	yieldTurn()
}

// supervisorWait retries what waits, and returns how long poll may sleep: the
// address of a timespec, or 0 for ever.
//
//go:norace
//go:nocheckptr
func supervisorWait() uintptr {
	if st.supervisor == nil || supervisor.Pending(st.supervisor) == 0 {
		return 0
	}
	takeTurn()
	supervisor.Retry(st.supervisor)
	yieldTurn()
	supervisor.RetryAsked(st.supervisor)
	st.retry = [2]int64{0, retryMS * 1e6}
	return uintptr(unsafe.Pointer(&st.retry))
}

// takeTurn lets a warden serve its supervisor's calls alone, and yieldTurn lets the next one: the supervisor counts on it that
// nothing in the sandbox changes a name between its check and its act. The kernel yields the turn of a warden that is killed
// (fcntl(2), advisory record locks), and a warden that is stopped is killed. A warden that gets no turn ends, and its command with it.
//
//go:norace
//go:nocheckptr
func takeTurn() {
	const wrLock = 1
	for st.turn > 0 {
		st.lock = flock{kind: wrLock}
		_, errno := sys.Call(syscall.SYS_FCNTL, st.turn, syscall.F_SETLKW, sys.Addr(&st.lock), 0, 0, 0)
		if errno == 0 {
			return
		}
		if errno != uintptr(syscall.EINTR) {
			exitInit()
		}
	}
}

//go:norace
//go:nocheckptr
func yieldTurn() {
	if st.turn > 0 {
		st.lock = flock{kind: syscall.F_UNLCK}
		sys.Call(syscall.SYS_FCNTL, st.turn, syscall.F_SETLK, sys.Addr(&st.lock), 0, 0, 0)
	}
}
