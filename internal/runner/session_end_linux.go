package runner

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"golang.org/x/sys/unix"
)

// await waits for the end of a session whose init was asked to end, or is dead. A process outside may have stopped init or the stage: they are continued after a
// second. What init has left the stage ends, perhaps without the keeper: if that takes too long the stage is killed.
func (n *Session) await(end <-chan struct{}) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for waited := false; ; waited = true {
		select {
		case <-end:
			return
		case <-late.C:
		}
		if waited {
			n.cmd.Process.Kill()
			<-end
			return
		}
		n.init.signal(unix.SIGCONT)
		n.cmd.Process.Signal(unix.SIGCONT)
		late.Reset(stage.MostEnd)
	}
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
