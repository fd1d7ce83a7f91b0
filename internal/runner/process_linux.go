package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// Processes lists what runs in the session but for the sandbox's own processes: those of each command, found from its warden
// down. It is a look at what changes meanwhile.
func (n *Session) Processes() ([]policy.Process, error) {
	if err := n.err(nil); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []policy.Process
	for c, m := range n.members {
		select {
		case <-m.decided:
		default:
			continue
		}
		if !c.Held {
			continue // its tool was not executed
		}
		of := policy.Process{Command: m.tool}
		if m.printed != nil {
			of.ID = m.printed.id
		}
		before := len(list)
		warden := c.PID()
		if warden > 0 && c.Process() != nil {
			list = addChildren(list, warden, of)
		}
		if c.PID() != warden {
			list = list[:before] // it has ended, and its number may be another process's
		}
	}
	slices.SortFunc(list, func(a, b policy.Process) int { return a.PID - b.PID })
	return list, nil
}

// Signal sends a signal to a process of the session by the number that it has inside. The error wraps [os.ErrProcessDone] if there is
// no such process.
func (n *Session) Signal(pid int, sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("sandbox: signal %v: %w", sig, syscall.EINVAL)
	}
	list, err := n.Processes()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(p policy.Process) bool { return p.PID == pid })
	if i < 0 {
		return fmt.Errorf("sandbox: process %d of the session: %w", pid, os.ErrProcessDone)
	}
	fd, err := unix.PidfdOpen(list[i].Outside, 0)
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

// addChildren adds the processes below one, of the command of parent.
func addChildren(list []policy.Process, outside int, parent policy.Process) []policy.Process {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", outside))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(word)
			p, ok := look(child)
			if !ok {
				continue
			}
			p.Parent, p.Command, p.ID = parent.PID, parent.Command, parent.ID
			list = addChildren(append(list, p), child, p)
		}
	}
	return list
}

// look reads what /proc says of a process.
func look(outside int) (p policy.Process, ok bool) {
	p.Outside = outside
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", outside))
	if err != nil {
		return p, false
	}
	_, rest, _ := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	numbers := bytes.Fields(line)
	if len(numbers) == 0 {
		return p, false
	}
	p.PID, _ = strconv.Atoi(string(numbers[len(numbers)-1]))
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", outside)); len(text) > 0 {
		p.Args = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", outside)); len(text) > 0 {
		if f := strings.Fields(string(text)); len(f) > 1 {
			pages, _ := strconv.ParseUint(f[1], 10, 64)
			p.Memory = pages * uint64(os.Getpagesize())
		}
	}
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", outside)); len(text) > 0 {
		const tick = 10 * time.Millisecond // USER_HZ is 100 (proc_pid_stat(5))
		if f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]); len(f) > 12 {
			user, _ := strconv.Atoi(string(f[11]))
			system, _ := strconv.Atoi(string(f[12]))
			p.CPU = time.Duration(user+system) * tick
		}
	}
	return p, true
}
