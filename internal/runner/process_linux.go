package runner

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A counted is a member whose processes are looked for below its warden.
type counted struct {
	control *stage.Control
	warden  int
	of      policy.Process
}

// Processes lists what runs in the session but for the sandbox's own processes: those of each command, found from its warden
// down. It is a look at what changes meanwhile. /proc may answer late, and commands begin and end meanwhile, for which the lock is.
func (n *Session) Processes() ([]policy.Process, error) {
	if err := n.err(nil); err != nil {
		return nil, err
	}
	var list []policy.Process
	for _, m := range n.counted() {
		if below := addChildren(nil, m.warden, m.of); n.isWarden(m) {
			list = append(list, below...)
		}
	}
	slices.SortFunc(list, func(a, b policy.Process) int { return a.PID - b.PID })
	return list, nil
}

// counted lists the members whose tools were executed.
func (n *Session) counted() (list []counted) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c, m := range n.members {
		select {
		case <-m.decided:
		default:
			continue
		}
		if !c.Started {
			continue // its tool was not executed
		}
		of := policy.Process{Command: m.tool}
		if m.printed != nil {
			of.ID = m.printed.id
		}
		if warden := c.PID(); warden > 0 && c.Process() != nil {
			list = append(list, counted{c, warden, of})
		}
	}
	return list
}

// isWarden reports whether a member's warden has not ended: else its number may be another process's.
func (n *Session) isWarden(m counted) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, is := n.members[m.control]
	return is && m.control.PID() == m.warden
}

// endLeft ends what the tool of a command has left, and waits until gone is closed. It reports whether there was something, and what is not dead half a minute later.
func (n *Session) endLeft(c *stage.Control, gone <-chan struct{}) (was bool, stuck error) {
	had, was := n.killLeft(c)
	if !had || c.Stuck != 0 { // it was waited for before
		return false, nil
	}
	select {
	case <-gone:
	case <-time.After(stage.MostEnd):
		n.mu.Lock()
		defer n.mu.Unlock()
		if _, is := n.members[c]; is {
			return true, &StuckError{PID: max(c.PID(), 1)}
		}
	}
	return was, nil
}

// killLeft kills the warden of a command whose tool has ended. It reports whether there was one, and whether it had processes.
func (n *Session) killLeft(c *stage.Control) (had, left bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m, has := n.members[c]
	if !has {
		return false, false
	}
	select {
	case <-m.ended:
		left = c.Left()
		c.KillInit()
		return true, left
	default:
		return false, false
	}
}

// processesToDial is what a directDialer takes, or nil.
func (n *Session) processesToDial() func() []policy.Process {
	if !n.sandbox.NetConfig.Dials || !n.sandbox.meets() {
		return nil
	}
	return func() []policy.Process {
		list, _ := n.Processes()
		return list
	}
}

// Signal sends a signal to a process of the session by the number that it has inside. The error wraps [os.ErrProcessDone] if there is
// no such process.
func (n *Session) Signal(pid int, sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sandbox: signal %v: %w", sig, syscall.EINVAL)
	}
	n.pause.signals.RLock()
	defer n.pause.signals.RUnlock()
	if n.pause.on.Load() {
		return pausedError("passes no signals on")
	}
	list, err := n.Processes()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(p policy.Process) bool { return p.PID == pid })
	if i < 0 {
		return fmt.Errorf("sandbox: process %d of the session: %w", pid, os.ErrProcessDone)
	}
	fd, err := openProcess(list[i].Outside)
	if err == nil {
		defer unix.Close(fd)
		// The number outside may be another process's by now. If it is still listed, the pidfd is that process's, or of one that has ended.
		again, _ := n.Processes()
		if slices.ContainsFunc(again, func(p policy.Process) bool { return p.PID == pid && p.Outside == list[i].Outside }) {
			err = unix.PidfdSendSignal(fd, number, nil, 0)
		} else {
			err = unix.ESRCH
		}
	}
	if err == unix.ESRCH {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("sandbox: process %d of the session: %w", pid, err)
	}
	return nil
}
