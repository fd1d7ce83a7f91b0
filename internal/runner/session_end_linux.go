package runner

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"golang.org/x/sys/unix"
)

// await waits for the end of a session whose init was asked to end, or is dead, and reports whether it came. A process outside may have stopped init or the
// stage: they are continued after a second. Half a minute later the stage is killed, what init has left being its to end, or at its end the keeper's.
func (n *Session) await(end <-chan struct{}) bool {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for _, act := range []func(){n.resumeOwn, func() { n.cmd.Process.Kill() }} {
		select {
		case <-end:
			return true
		case <-late.C:
		}
		act()
		late.Reset(stage.MostEnd)
	}
	late.Reset(time.Second)
	select {
	case <-end:
		return true
	case <-late.C:
		return false
	}
}

// resumeOwn continues init and the stage.
func (n *Session) resumeOwn() {
	n.init.signal(unix.SIGCONT)
	n.cmd.Process.Signal(unix.SIGCONT)
}

// overBorrowed is the error of a command, failed or killed before init had heard of it, that had borrowed the session and ended with from. The session ends with its one command, and is
// nothing that the caller knows of: what ended it is what ended the command.
func (n *Session) overBorrowed(failed bool, from error) error {
	<-n.ended // listenInside has it end
	if lost := lostError(n.control.Lost, from); lost != nil {
		return lost
	}
	if failed { // the stage found no init to hand the command to
		return &ProcessError{Process: "init", Status: "ended"}
	}
	return from
}
