package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _ = offer(attacks, "exit stops", exitStopActs)

const (
	seizeRequest  = 0x4206
	setOptions    = 0x4200
	oldSetOptions = 21 // amd64 alone has it
	ordinary      = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
		unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEVFORKDONE | unix.PTRACE_O_EXITKILL
)

// exitStopActs ask for a stop that a killed tracee waits in for its tracer. Two
// processes that trace each other so hang the machine's process table until it is
// rebooted: no test does that, each act has one tracer, which ends.
var exitStopActs = []act{
	{name: "seize a child with a debugger's options", works: true, tame: true, try: func(ground) error { return traceWith(seizeRequest, ordinary) }},
	{name: "set a debugger's options", works: true, tame: true, try: func(ground) error { return traceWith(setOptions, ordinary) }},
	{name: "seize a child with PTRACE_O_TRACEEXIT", tame: true, try: func(ground) error { return traceWith(seizeRequest, unix.PTRACE_O_TRACEEXIT) }},
	{name: "set PTRACE_O_TRACEEXIT", tame: true, try: func(ground) error { return traceWith(setOptions, unix.PTRACE_O_TRACEEXIT) }},
	{name: "set PTRACE_O_TRACEEXIT by the request's old number", tame: true, lacks: []error{unix.EIO},
		try: func(ground) error { return traceWith(oldSetOptions, unix.PTRACE_O_TRACEEXIT) }},
	{name: "set PTRACE_O_TRACEEXIT among others", tame: true, try: func(ground) error { return traceWith(setOptions, ordinary|unix.PTRACE_O_TRACEEXIT) }},
}

// traceWith seizes a child and gives it options, by the request. The thread that
// traces ends with the function, and lets go of the child.
func traceWith(request, options uintptr) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		c := exec.Command("/bin/sleep", "1000")
		if err := c.Start(); err != nil {
			result <- err
			return
		}
		err := trace(c.Process.Pid, request, options)
		result <- errors.Join(err, c.Process.Kill())
		unix.Wait4(c.Process.Pid, nil, unix.WALL, nil)
	}()
	return <-result
}

// trace seizes pid, stops it, gives it options by one request and takes them away,
// so that nothing stops it at its end.
func trace(pid int, request, options uintptr) error {
	first := uintptr(0)
	if request == seizeRequest {
		first = options
	}
	if err := rawCall(unix.SYS_PTRACE, seizeRequest, uintptr(pid), 0, first); err != nil {
		return fmt.Errorf("seize: %w", err)
	}
	if err := rawCall(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(pid)); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	if request != seizeRequest {
		if err := rawCall(unix.SYS_PTRACE, request, uintptr(pid), 0, options); err != nil {
			return fmt.Errorf("set options: %w", err)
		}
	}
	return rawCall(unix.SYS_PTRACE, setOptions, uintptr(pid), 0, 0)
}

// Every policy without a supervisor, which lets one process ask, refuses it, those without a filter profile too.
func TestKernelAttackExitStops(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, unsupervised, func(t *testing.T, w walls) {
		attackPlainly(t, "exit stops")
		attackWith(t, "exit stops", w, nil)
	})
}
